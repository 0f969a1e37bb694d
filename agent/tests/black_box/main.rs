//! The agent program from outside.

mod command_line;
mod jobs;
mod nvml;
mod replicas;
mod support;
