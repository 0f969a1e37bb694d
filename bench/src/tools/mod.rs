//! The load generators, one file each.

pub mod llm;
