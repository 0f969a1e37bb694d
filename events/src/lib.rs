//! The vocabulary of Benchtrail.

pub mod canonical;
pub mod envelope;
pub mod hexadecimal;
pub mod merkle;
pub mod summary;
pub mod timestamp;
