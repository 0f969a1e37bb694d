//! Content-addressed storage of what is too large for an event: log files, request logs, prompts, images.
//!
//! A blob belongs to an organisation and is named by the SHA-256 of its bytes. It is durable before [`Blobs::put`]
//! returns, so that an event may name it from then on. Two organisations never share one, even where the bytes are
//! the same: erasing one leaves the other alone, and nobody learns what others have.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use events::hexadecimal;
use events::keys::{PLATFORM_ORG, check_code};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path as StorePath};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Largest blob, in bytes.
pub const MAX_BLOB_BYTES: u64 = 1024 * 1024 * 1024;
/// What is collected before a part is written; object stores want at least 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// What can go wrong with a blob.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The organisation's code or the hash has not the form of one.
    #[error("{0}")]
    Name(String),
    /// There is no such blob, or it was erased.
    #[error("there is no blob {sha256} of organisation {org}")]
    NotFound {
        /// The organisation.
        org: String,
        /// The hash that was asked for.
        sha256: String,
    },
    /// The bytes that came have another hash than was announced. Nothing was kept.
    #[error("the bytes have the SHA-256 {actual}, not {announced} as announced; send them again")]
    WrongHash {
        /// The hash that was announced.
        announced: String,
        /// The hash of what came.
        actual: String,
    },
    /// More than [`MAX_BLOB_BYTES`]. Nothing was kept.
    #[error("a blob has at most {MAX_BLOB_BYTES} bytes")]
    TooLarge,
    /// What is stored is not what was put there.
    #[error("blob {sha256} of organisation {org} is damaged in the store")]
    Damaged {
        /// The organisation.
        org: String,
        /// The hash it should have.
        sha256: String,
    },
    /// The sender stopped in the middle. Nothing was kept.
    #[error("receiving a blob: {0}")]
    Receive(String),
    /// The store answered with an error.
    #[error("the blob store: {0}")]
    Store(#[from] object_store::Error),
    /// The folder could not be made.
    #[error("{path}: {source}")]
    Folder {
        /// Which folder.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// How an event names a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Number of bytes.
    pub bytes: u64,
}

/// A store of blobs; cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
}

impl Blobs {
    /// A store in a folder, which is made where there is none.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn in_folder(folder: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| BlobError::Folder { path: folder.display().to_string(), source })?;
        // Without the flush a blob could be gone after a power failure although an event names it.
        Ok(Self::of(Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))))
    }

    /// A store elsewhere, such as S3.
    pub fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    /// Stores bytes as they come and returns once they are durable. They must have the hash that was announced.
    /// Storing the same again is harmless.
    ///
    /// # Errors
    /// See [`BlobError`]; after any error nothing new is visible.
    pub async fn put<E: std::fmt::Display>(
        &self,
        org: &str,
        sha256: &str,
        body: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<BlobRef, BlobError> {
        self.receive(org, sha256, body).await?.keep().await
    }

    /// Receives bytes as they come. They must have the hash that was announced; nobody sees them until they are kept.
    ///
    /// # Errors
    /// See [`BlobError`]; after any error nothing is left.
    pub async fn receive<E: std::fmt::Display>(
        &self,
        org: &str,
        sha256: &str,
        body: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Received, BlobError> {
        let path = path_of(org, sha256)?;
        let mut body = std::pin::pin!(body);
        let mut hash = Sha256::new();
        let mut bytes = 0_u64;
        let mut part = BytesMut::new();
        let mut upload = None;
        let received = async {
            while let Some(chunk) = body.next().await {
                let chunk = chunk.map_err(|error| BlobError::Receive(error.to_string()))?;
                bytes += chunk.len() as u64;
                if bytes > MAX_BLOB_BYTES {
                    return Err(BlobError::TooLarge);
                }
                hash.update(&chunk);
                part.extend_from_slice(&chunk);
                if part.len() >= PART_BYTES {
                    if upload.is_none() {
                        upload = Some(self.store.put_multipart(&path).await?);
                    }
                    if let Some(upload) = &mut upload {
                        upload.put_part(part.split().freeze().into()).await?;
                    }
                }
            }
            let actual = hexadecimal::encode(&hash.finalize());
            if actual != sha256 {
                return Err(BlobError::WrongHash { announced: sha256.to_owned(), actual });
            }
            Ok(())
        };
        let outcome = received.await;
        let blob = BlobRef { sha256: sha256.to_owned(), bytes };
        let received = Received { store: self.store.clone(), path, upload, rest: part.freeze(), blob };
        match outcome {
            Ok(()) => Ok(received),
            Err(error) => {
                received.discard().await;
                Err(error)
            }
        }
    }

    /// Stores bytes that are at hand.
    ///
    /// # Errors
    /// See [`BlobError`].
    pub async fn put_bytes(&self, org: &str, bytes: Bytes) -> Result<BlobRef, BlobError> {
        let sha256 = hexadecimal::encode(&Sha256::digest(&bytes));
        self.put(org, &sha256, futures::stream::iter([Ok::<_, std::convert::Infallible>(bytes)])).await
    }

    /// The bytes of a blob, checked against its hash.
    ///
    /// # Errors
    /// There is none, or see [`BlobError`].
    pub async fn get(&self, org: &str, sha256: &str) -> Result<Bytes, BlobError> {
        let (_, body) = self.stream(org, sha256).await?;
        let whole = body.try_fold(BytesMut::new(), |mut whole, chunk| async move {
            whole.extend_from_slice(&chunk);
            Ok(whole)
        });
        Ok(whole.await?.freeze())
    }

    /// The size of a blob and its bytes as they are read. The last item is an error where they have another hash.
    ///
    /// # Errors
    /// There is none, or see [`BlobError`].
    pub async fn stream(
        &self,
        org: &str,
        sha256: &str,
    ) -> Result<(u64, BoxStream<'static, Result<Bytes, BlobError>>), BlobError> {
        let found = self.store.get(&path_of(org, sha256)?).await;
        let found = found.map_err(|error| not_found(error, org, sha256))?;
        let size = found.meta.size;
        let (org, sha256) = (org.to_owned(), sha256.to_owned());
        let checked = futures::stream::unfold(Some((found.into_stream(), Sha256::new())), move |state| {
            let (org, sha256) = (org.clone(), sha256.clone());
            async move {
                let (mut body, mut hash) = state?;
                match body.next().await {
                    Some(Ok(chunk)) => {
                        hash.update(&chunk);
                        Some((Ok(chunk), Some((body, hash))))
                    }
                    Some(Err(error)) => Some((Err(error.into()), None)),
                    None if hexadecimal::encode(&hash.finalize()) == sha256 => None,
                    None => Some((Err(BlobError::Damaged { org, sha256 }), None)),
                }
            }
        });
        // Fused: whoever compresses it asks once more after its end.
        Ok((size, checked.fuse().boxed()))
    }

    /// The size of a blob in bytes; `None` where there is none.
    ///
    /// # Errors
    /// See [`BlobError`].
    pub async fn size(&self, org: &str, sha256: &str) -> Result<Option<u64>, BlobError> {
        match self.store.head(&path_of(org, sha256)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Erases a blob. That it is gone, and which hash it had, is for an event to say.
    ///
    /// # Errors
    /// There is none, or see [`BlobError`].
    pub async fn erase(&self, org: &str, sha256: &str) -> Result<(), BlobError> {
        self.store.delete(&path_of(org, sha256)?).await.map_err(|error| not_found(error, org, sha256))
    }
}

/// Bytes that have arrived and are not kept yet.
#[derive(Debug)]
#[must_use = "they are kept or discarded"]
pub struct Received {
    store: Arc<dyn ObjectStore>,
    path: StorePath,
    upload: Option<Box<dyn MultipartUpload>>,
    /// What is not sent to the store yet.
    rest: Bytes,
    blob: BlobRef,
}

impl Received {
    /// What they are.
    pub fn blob(&self) -> &BlobRef {
        &self.blob
    }

    /// Keeps them; returns once they are durable.
    ///
    /// # Errors
    /// See [`BlobError`]; after any error nothing new is visible.
    pub async fn keep(self) -> Result<BlobRef, BlobError> {
        match self.upload {
            Some(mut upload) => {
                if !self.rest.is_empty() {
                    upload.put_part(self.rest.into()).await?;
                }
                upload.complete().await?;
            }
            None => drop(self.store.put(&self.path, PutPayload::from_bytes(self.rest)).await?),
        }
        Ok(self.blob)
    }

    /// Throws them away.
    pub async fn discard(self) {
        if let Some(mut upload) = self.upload {
            // A store that cannot clean it up now does so by its own rules.
            let _ = upload.abort().await;
        }
    }
}

/// `<org>/<first two digits>/<hash>`: no folder gets too many entries.
fn path_of(org: &str, sha256: &str) -> Result<StorePath, BlobError> {
    if org != PLATFORM_ORG {
        check_code("organisation", org).map_err(|error| BlobError::Name(error.to_string()))?;
    }
    let lower_hexadecimal =
        sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if !lower_hexadecimal {
        return Err(BlobError::Name(format!(
            "{sha256:?} is not a SHA-256 in 64 lower-case hexadecimal digits"
        )));
    }
    Ok(StorePath::from(format!("{org}/{}/{sha256}", &sha256[..2])))
}

fn not_found(error: object_store::Error, org: &str, sha256: &str) -> BlobError {
    match error {
        object_store::Error::NotFound { .. } => {
            BlobError::NotFound { org: org.to_owned(), sha256: sha256.to_owned() }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Blobs) {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(&folder.path().join("blobs")).unwrap();
        (folder, blobs)
    }

    fn body(chunks: Vec<Bytes>) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
        futures::stream::iter(chunks.into_iter().map(Ok))
    }

    /// Every file below a folder.
    fn files(folder: &Path) -> Vec<std::path::PathBuf> {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
            .collect()
    }

    #[tokio::test]
    async fn a_blob_is_found_by_its_hash_and_only_in_its_organisation() {
        let (_folder, blobs) = store();
        let blob = blobs.put_bytes("acme", Bytes::from_static(b"hello")).await.unwrap();
        assert_eq!(blob.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!(blob.bytes, 5);
        assert_eq!(blobs.put_bytes("acme", Bytes::from_static(b"hello")).await.unwrap(), blob);
        assert_eq!(blobs.get("acme", &blob.sha256).await.unwrap(), "hello");
        assert_eq!(blobs.size("acme", &blob.sha256).await.unwrap(), Some(5));
        assert_eq!(blobs.size("other", &blob.sha256).await.unwrap(), None);
        assert!(matches!(blobs.get("other", &blob.sha256).await, Err(BlobError::NotFound { .. })));
        blobs.erase("acme", &blob.sha256).await.unwrap();
        assert!(matches!(blobs.get("acme", &blob.sha256).await, Err(BlobError::NotFound { .. })));
        assert!(matches!(blobs.erase("acme", &blob.sha256).await, Err(BlobError::NotFound { .. })));
    }

    #[tokio::test]
    async fn a_large_blob_goes_in_and_out_in_parts() {
        let (_folder, blobs) = store();
        let chunk = Bytes::from(vec![7; 3_000_000]);
        let whole = chunk.repeat(7);
        let sha256 = hexadecimal::encode(&Sha256::digest(&whole));
        let blob = blobs.put("_", &sha256, body(vec![chunk; 7])).await.unwrap();
        assert_eq!(blob.bytes, 21_000_000);
        assert_eq!(blobs.get("_", &sha256).await.unwrap(), whole);
    }

    #[tokio::test]
    async fn bytes_of_another_hash_are_refused_and_leave_nothing_behind() {
        let (folder, blobs) = store();
        let hash = "0".repeat(64);
        for chunks in
            [vec![Bytes::from_static(b"x")], vec![Bytes::from(vec![1; PART_BYTES]), Bytes::from_static(b"x")]]
        {
            let refused = blobs.put("acme", &hash, body(chunks)).await;
            assert!(matches!(refused, Err(BlobError::WrongHash { .. })));
        }
        let broken = futures::stream::iter([
            Ok(Bytes::from(vec![1; PART_BYTES])),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ]);
        assert!(matches!(blobs.put("acme", &hash, broken).await, Err(BlobError::Receive(_))));
        assert_eq!(files(folder.path()), Vec::<std::path::PathBuf>::new());
    }

    #[tokio::test]
    async fn names_that_could_leave_the_folder_are_refused() {
        let (_folder, blobs) = store();
        let hash = "0".repeat(64);
        for org in ["..", "", "a/b", "A", "%2e%2e"] {
            assert!(matches!(blobs.size(org, &hash).await, Err(BlobError::Name(_))), "{org}");
        }
        for hash in ["", "00", &"F".repeat(64), &"../".repeat(22)[..64]] {
            assert!(matches!(blobs.size("acme", hash).await, Err(BlobError::Name(_))), "{hash}");
        }
    }

    #[tokio::test]
    async fn damage_in_the_store_is_noticed() {
        let (folder, blobs) = store();
        let blob = blobs.put_bytes("acme", Bytes::from_static(b"hello")).await.unwrap();
        std::fs::write(&files(folder.path())[0], b"hellx").unwrap();
        assert!(matches!(blobs.get("acme", &blob.sha256).await, Err(BlobError::Damaged { .. })));
    }
}
