//! Starts and stops processes, and waits until a model server is ready.

mod proc_fs;
mod process;
mod readiness;

use std::net::{Ipv4Addr, TcpListener};

pub use proc_fs::{ProcessId, with_marker};
pub use process::{MARKER_ENV, Process, ProcessSpec, SpawnError, kill_group};
pub use readiness::{Endpoint, NotReady, Ready, wait_until_ready};

/// A TCP port of the loopback address that nobody listens on now.
///
/// # Errors
/// When there is none.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
