//! The key that signs checkpoints.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use events::hexadecimal;
use events::merkle::Checkpoint;
use zeroize::Zeroizing;

use super::LogError;

/// Name of the key file in the data directory.
pub const KEY_FILE: &str = "log-signing.key";

/// Reads the key file, or makes one that only its owner can read.
pub(super) fn open_key(data_dir: &Path) -> Result<SigningKey, LogError> {
    let path = data_dir.join(KEY_FILE);
    let file_error = |source| LogError::File { path: path.display().to_string(), source };
    let key_error = |what: &str| LogError::Key { path: path.display().to_string(), what: what.to_owned() };
    match fs::read_to_string(&path).map(Zeroizing::new) {
        Ok(text) => {
            let mode = fs::metadata(&path).map_err(file_error)?.mode();
            if mode & 0o077 != 0 {
                return Err(key_error(&format!(
                    "others can read it (mode {:o}); chmod 600 it",
                    mode & 0o777
                )));
            }
            let seed = hexadecimal::decode::<32>(text.trim())
                .ok_or_else(|| key_error("not 64 hexadecimal digits"))?;
            Ok(SigningKey::from_bytes(&Zeroizing::new(seed)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(data_dir).map_err(file_error)?;
            let seed = Zeroizing::new(rand::random::<[u8; 32]>());
            let text = Zeroizing::new(format!("{}\n", hexadecimal::encode(&*seed)));
            // Written beside and then linked, so that two servers that start at once agree on one key, and a crash
            // leaves no half of one.
            let draft = data_dir.join(format!("{KEY_FILE}.{}", uuid::Uuid::now_v7().simple()));
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&draft)
                .map_err(file_error)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(file_error)?;
            let linked = fs::hard_link(&draft, &path);
            fs::remove_file(&draft).map_err(file_error)?;
            match linked {
                Ok(()) => {
                    fs::File::open(data_dir).and_then(|dir| dir.sync_all()).map_err(file_error)?;
                    Ok(SigningKey::from_bytes(&seed))
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_key(data_dir),
                Err(error) => Err(file_error(error)),
            }
        }
        Err(error) => Err(file_error(error)),
    }
}

/// A signed checkpoint.
pub(super) fn sign(
    key: &SigningKey,
    previous_position: i64,
    position: i64,
    hash: [u8; 32],
    root: [u8; 32],
) -> Checkpoint {
    let public_key = key.verifying_key().to_bytes();
    let mut checkpoint =
        Checkpoint { position, hash, previous_position, root, public_key, signature: [0; 64] };
    checkpoint.signature = key.sign(&checkpoint.signed_bytes()).to_bytes();
    checkpoint
}

/// Whether a checkpoint bears the signature of the key it names. Whether that key is to be trusted is another question.
pub fn signature_holds(checkpoint: &Checkpoint) -> bool {
    VerifyingKey::from_bytes(&checkpoint.public_key).is_ok_and(|key| {
        key.verify_strict(&checkpoint.signed_bytes(), &Signature::from_bytes(&checkpoint.signature)).is_ok()
    })
}
