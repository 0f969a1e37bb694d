//! Files that only their owner may read.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::SecretsError;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> SecretsError {
    let path = path.display().to_string();
    move |source| SecretsError::File { path, source }
}

/// Reads a secret, or makes it and keeps it with mode 0600. Two processes that start at once agree on one.
pub(super) fn secret(path: &Path, make: impl FnOnce() -> String) -> Result<String, SecretsError> {
    match fs::read_to_string(path) {
        Ok(text) => return Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(path)(error)),
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed(dir))?;
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed(dir))?;
    }
    // Written beside its place and linked there, which fails when another process was first.
    let unfinished = path.with_extension(format!("new-{}", std::process::id()));
    let text = make();
    write_private(&unfinished, &text).map_err(failed(&unfinished))?;
    let linked = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished).map_err(failed(&unfinished))?;
    match linked {
        Ok(()) => Ok(text),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::read_to_string(path).map_err(failed(path))
        }
        Err(error) => Err(failed(path)(error)),
    }
}

/// Writes a file with mode 0600 and flushes it to disk; replaces what was there.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
