//! Support for the agent's own tests: the real agent program against a stand-in for the control plane.

pub mod agent;
pub mod control_plane;
pub mod jobs;
