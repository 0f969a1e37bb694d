//! The Benchtrail agent: the worker on a GPU host.
//!
//! It claims a job, starts the model server and the load generator from argv vectors (never through a shell),
//! samples the host's telemetry, and reports all of it. What it reports passes through the [`spool`] first: a
//! report is on disk before it is sent for the first time and leaves the disk only when the control plane has
//! answered for it. So a report is sent at least once and, by its event id, recorded exactly once.
//!
//! Where things are: [`daemon`] claims and supervises, [`job`] carries out one attempt, [`serving`] starts and
//! stops processes, [`tools`] knows the load generators, [`telemetry`] samples, [`logs`] pumps and redacts,
//! [`spool`] keeps, [`control`] talks to the control plane.

pub mod cli;
pub mod clock;
pub mod control;
pub mod daemon;
pub mod doctor;
pub mod enrol;
pub mod host;
pub mod identity;
pub mod job;
pub mod logs;
pub mod network;
pub mod policy;
pub mod serving;
pub mod spool;
pub mod state_dir;
pub mod telemetry;
pub mod tools;
