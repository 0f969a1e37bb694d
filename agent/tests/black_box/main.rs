//! The agent program from outside.

mod amdgpu;
mod command_line;
mod jobs;
mod libtpu;
mod nvml;
mod readiness;
mod replicas;
mod support;
