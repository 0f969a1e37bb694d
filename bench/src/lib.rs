//! The load generators.
