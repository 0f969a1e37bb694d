//! The Benchtrail control plane.

pub mod blobs;
pub mod clock;
pub mod domain;
pub mod live;
pub mod log;
pub mod plant;
pub mod projections;
pub mod quality;
pub mod relay;
