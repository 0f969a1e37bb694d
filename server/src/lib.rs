//! The Benchtrail control plane.

pub mod blobs;
pub mod clock;
pub mod log;
pub mod plant;
