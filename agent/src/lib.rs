//! The Benchtrail agent.
