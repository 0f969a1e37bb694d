//! Starts and stops processes, and waits until a model server is ready.

mod probe;
mod proc_fs;
mod process;
mod readiness;
pub mod version;

use std::net::{Ipv4Addr, TcpListener};

pub use probe::Probe;
pub use proc_fs::{ProcessId, with_marker};
pub use process::{MARKER_ENV, Process, ProcessSpec, SpawnError, kill_group};
pub use readiness::{Endpoint, NotReady, Ready, wait_until_answered, wait_until_ready, wait_until_up};

/// A TCP port of the loopback address that nobody listens on now.
///
/// # Errors
/// When there is none.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The first of so many ports in a row that are free on the loopback address.
///
/// # Errors
/// When no such row is found.
pub fn free_ports(count: u32) -> std::io::Result<u16> {
    const TRIES: u32 = 100;
    let mut last = std::io::Error::other("no row of free ports");
    for _ in 0..TRIES {
        let base = free_port()?;
        let row = u16::try_from(count).ok().and_then(|count| base.checked_add(count.saturating_sub(1)));
        let Some(end) = row else { continue };
        // Held at the same time: one after another could each be the same.
        let held: std::io::Result<Vec<TcpListener>> =
            (base..=end).map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))).collect();
        match held {
            Ok(_) => return Ok(base),
            Err(error) => last = error,
        }
    }
    Err(last)
}
