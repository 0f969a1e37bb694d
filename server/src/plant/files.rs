//! Folders, the lock on the plant's folder, and the ends of logs.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg};

use super::PlantError;

/// Makes `dir` and its parents. It may be entered by others (the database can run as another user), what is secret in
/// it is closed by its own mode.
pub(super) fn private_dir(dir: &Path) -> Result<(), PlantError> {
    fs::create_dir_all(dir).map_err(PlantError::io("making a folder", dir))
}

/// Makes `dir` for its owner alone.
pub(super) fn closed_dir(dir: &Path) -> Result<(), PlantError> {
    private_dir(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(PlantError::io("closing a folder", dir))
}

/// Reads a secret, or makes it and keeps it for its owner alone.
pub(super) fn secret(path: &Path, make: impl FnOnce() -> String) -> Result<String, PlantError> {
    match fs::read_to_string(path) {
        Ok(secret) if !secret.trim().is_empty() => return Ok(secret.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(PlantError::io("reading a key", path)(error)),
    }
    let secret = make();
    let whole = path.with_extension("new");
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&whole)?;
        file.write_all(secret.as_bytes())?;
        file.sync_all()?;
        fs::rename(&whole, path)
    };
    write().map_err(PlantError::io("keeping a key", path))?;
    Ok(secret)
}

/// The last lines of a log, for an error message.
pub(super) fn tail(log: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(4096)));
        let _ = file.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// A service's log file; a large one of an earlier start is put aside.
pub(super) fn log_file(dir: &Path, service: &str) -> PathBuf {
    let log = dir.join("log").join(format!("{service}.log"));
    if fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 16 << 20) {
        let _ = fs::rename(&log, log.with_extension("log.1"));
    }
    log
}

/// The lock on the plant's folder: one plant at a time. The kernel lets it go when the process ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] Flock<File>);

impl Lock {
    pub fn take(dir: &Path) -> Result<Self, PlantError> {
        let path = dir.join("plant.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(PlantError::io("opening the lock", &path))?;
        let mut pid = String::new();
        let _ = file.read_to_string(&mut pid);
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| PlantError::InUse { dir: dir.to_owned(), pid: pid.trim().to_owned() })?;
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = write!(file, "{}", std::process::id());
        Ok(Self(file))
    }
}
