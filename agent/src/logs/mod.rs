//! The three logs of a job: framework, tool and agent.
//!
//! A pump reads a process's output, blots out secrets, cuts it into lines and hands them to the log's writer. The
//! writer numbers the lines, writes all of them to a file, and reports the first few thousand live, in batches.

mod lines;
mod pump;
mod redact;
mod switch;
mod writer;

pub use lines::LineSplitter;
pub use pump::pump;
pub use redact::{Redactor, Secrets};
pub use switch::LogSwitch;
pub use writer::{LogEnd, LogHandle, LogLimits, LogWriter};
