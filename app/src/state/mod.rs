//! State that is plain data: what the URL says, and what the live stream adds up to. No browser in here.

pub mod args_edit;
pub mod board;
pub mod catalogue_view;
pub mod colours;
pub mod compare;
pub mod copied;
pub mod cursor;
pub mod estimate;
pub mod job_feed;
pub mod job_view;
pub mod limit;
pub mod live;
pub mod log_diff;
pub mod nearest;
pub mod place;
pub mod query;
pub mod report;
pub mod report_view;
pub mod requests;
pub mod result_key;
pub mod retry;
pub mod set_diff;
pub mod tabs;
pub mod topics;
pub mod window;
pub mod zoom;
