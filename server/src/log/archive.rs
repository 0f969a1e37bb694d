//! Archives: ranges of the log as compressed files, each with a manifest, that can be read and verified without the
//! database.
//!
//! A file holds one event a line, as JSON, in order, compressed with gzip. Its manifest names the range, the chain's
//! hash before and at the end, and the file's own SHA-256. Archiving copies; the database keeps its rows until its
//! owner detaches the partition, after which reading and verifying go on from the files.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use events::envelope::{GENESIS_HASH, Recorded, chain_hash};
use events::hexadecimal;
use events::keys::StreamKey;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::postgres::PgPool;

use super::LogError;
use super::appender::PARTITION;
use super::read::{MOST_EVENTS, Reader};

/// First field of a manifest; another form gets another name.
const FORMAT: &str = "benchtrail.archive.v1";
const MANIFEST_SUFFIX: &str = ".manifest.json";

/// What a file of the archive holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of manifest and file.
    pub format: String,
    /// First position.
    pub first: i64,
    /// Last position.
    pub last: i64,
    /// Number of events, which is `last - first + 1`.
    pub count: i64,
    /// The chain's hash before the first position.
    #[serde(with = "events::hexadecimal::array")]
    pub previous_hash: [u8; 32],
    /// The chain's hash at the last position.
    #[serde(with = "events::hexadecimal::array")]
    pub hash: [u8; 32],
    /// Name of the file, beside the manifest.
    pub file: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    #[serde(with = "events::hexadecimal::array")]
    pub sha256: [u8; 32],
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::File { path: path.display().to_string(), source }
}

/// Passes bytes on and hashes them.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Archives every full partition that the log has left behind and that `folder` does not hold yet.
///
/// # Errors
/// The database cannot be read, the folder cannot be written, or the chain does not fit.
pub async fn archive_sealed(pool: &PgPool, folder: &Path) -> Result<Vec<Manifest>, LogError> {
    let head: i64 = sqlx::query_scalar("select position from log_head").fetch_one(pool).await?;
    let archive = Archive::open(folder)?;
    let mut made = Vec::new();
    for number in 0..head / PARTITION {
        // Positions count from 1, so the first partition has one less.
        let (first, last) = ((number * PARTITION).max(1), (number + 1) * PARTITION - 1);
        if last < head && archive.covering(first).is_none() {
            made.push(archive_range(pool, folder, first, last).await?);
        }
    }
    Ok(made)
}

/// Archives the positions `first ..= last`, which must all be in the database. The chain is checked on the way, so that
/// what does not fit is never archived.
///
/// # Errors
/// The database cannot be read, the folder cannot be written, or the chain does not fit.
pub async fn archive_range(
    pool: &PgPool,
    folder: &Path,
    first: i64,
    last: i64,
) -> Result<Manifest, LogError> {
    fs::create_dir_all(folder).map_err(file_error(folder))?;
    let reader = Reader::new(pool.clone());
    let previous_hash = match first {
        ..=1 => GENESIS_HASH,
        _ => reader.read_all(first - 2, 1).await?.pop().ok_or(LogError::NoSuchPosition(first - 1))?.hash,
    };
    let file = format!("events-{first:012}-{last:012}.ndjson.gz");
    let path = folder.join(&file);
    let draft = folder.join(format!("{file}.draft"));
    let hashing = Hashing {
        inner: BufWriter::new(File::create(&draft).map_err(file_error(&draft))?),
        hash: Sha256::new(),
        bytes: 0,
    };
    let mut gzip = GzEncoder::new(hashing, Compression::default());
    let mut hash = previous_hash;
    let mut at = first - 1;
    while at < last {
        let events = reader.read_all(at, MOST_EVENTS.min(last - at)).await?;
        if events.is_empty() {
            return Err(LogError::NoSuchPosition(at + 1));
        }
        for event in events {
            at += 1;
            hash = chain_hash(&hash, &event.leaf);
            if event.position != at || event.hash != hash {
                let what = "the chain does not fit; it was not archived".to_owned();
                return Err(LogError::Damaged { position: at, what });
            }
            serde_json::to_writer(&mut gzip, &event).map_err(io::Error::from).map_err(file_error(&draft))?;
            gzip.write_all(b"\n").map_err(file_error(&draft))?;
        }
    }
    let hashing = gzip.finish().map_err(file_error(&draft))?;
    let (bytes, sha256) = (hashing.bytes, hashing.hash.finalize().into());
    let written = hashing.inner.into_inner().map_err(|error| error.into_error());
    written.and_then(|file| file.sync_all()).map_err(file_error(&draft))?;
    fs::rename(&draft, &path).map_err(file_error(&path))?;

    let manifest = Manifest {
        format: FORMAT.to_owned(),
        first,
        last,
        count: last - first + 1,
        previous_hash,
        hash,
        file,
        bytes,
        sha256,
    };
    // The manifest comes last: a file without one is a leftover and is written again.
    let path = folder.join(format!("events-{first:012}-{last:012}{MANIFEST_SUFFIX}"));
    let draft = folder.join(format!("events-{first:012}-{last:012}.manifest.draft"));
    let text = serde_json::to_string_pretty(&manifest).map_err(io::Error::from).map_err(file_error(&path))?;
    let mut file = File::create(&draft).map_err(file_error(&draft))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(file_error(&draft))?;
    fs::rename(&draft, &path).map_err(file_error(&path))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(file_error(folder))?;
    Ok(manifest)
}

/// A folder of archived ranges; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    folder: PathBuf,
    manifests: Arc<[Manifest]>,
    /// Where the last reading stopped: the next one usually goes on from there.
    cursor: Arc<Mutex<Option<Cursor>>>,
}

struct Cursor {
    position: i64,
    last: i64,
    lines: io::Lines<BufReader<GzDecoder<BufReader<File>>>>,
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("position", &self.position).field("last", &self.last).finish()
    }
}

impl Archive {
    /// Reads the manifests of a folder; one that does not exist holds none.
    ///
    /// # Errors
    /// The folder or a manifest cannot be read.
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        let mut manifests = Vec::new();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(file_error(folder))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(file_error(folder)(error)),
        };
        for path in entries.into_iter().map(|entry| entry.path()) {
            if path.to_string_lossy().ends_with(MANIFEST_SUFFIX) {
                let text = fs::read_to_string(&path).map_err(file_error(&path))?;
                let manifest: Manifest =
                    serde_json::from_str(&text).map_err(io::Error::from).map_err(file_error(&path))?;
                manifests.push(manifest);
            }
        }
        manifests.sort_by_key(|manifest| manifest.first);
        Ok(Self { folder: folder.to_owned(), manifests: manifests.into(), cursor: Arc::default() })
    }

    /// The manifests, in order.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The manifest of the file that holds a position.
    pub fn covering(&self, position: i64) -> Option<&Manifest> {
        self.manifests.iter().find(|manifest| manifest.first <= position && position <= manifest.last)
    }

    /// Up to `limit` events after position `after`, as far as the file that holds the next one goes. Empty where no file
    /// does. Blocks; their leaves are computed from what was read.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is not an event.
    pub fn read_after(&self, after: i64, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let Some(manifest) = self.covering(after + 1) else { return Ok(Vec::new()) };
        let path = self.folder.join(&manifest.file);
        let mut kept = self.cursor.lock().expect("no holder of this lock panics");
        let mut cursor =
            match kept.take().filter(|cursor| cursor.position == after && cursor.last == manifest.last) {
                Some(cursor) => cursor,
                None => {
                    let file = BufReader::new(File::open(&path).map_err(file_error(&path))?);
                    let mut lines = BufReader::new(GzDecoder::new(file)).lines();
                    for _ in manifest.first..=after {
                        lines.next().transpose().map_err(file_error(&path))?;
                    }
                    Cursor { position: after, last: manifest.last, lines }
                }
            };
        let mut events = Vec::new();
        while events.len() < limit && cursor.position < cursor.last {
            let position = cursor.position + 1;
            let damaged =
                |what: String| LogError::Damaged { position, what: format!("{}: {what}", path.display()) };
            let line = cursor.lines.next().ok_or_else(|| damaged("the file ends early".to_owned()))?;
            let line = line.map_err(|error| damaged(error.to_string()))?;
            let mut event: Recorded =
                serde_json::from_str(&line).map_err(|error| damaged(error.to_string()))?;
            event.leaf = event.computed_leaf();
            events.push(event);
            cursor.position = position;
        }
        *kept = Some(cursor);
        Ok(events)
    }

    /// Up to `count` archived events of a stream from a version on, in order. Reads the files one after another until it
    /// has them, so it costs as much as they are long; it is for the few streams that are asked for after their events
    /// have left the database. Blocks.
    ///
    /// # Errors
    /// A file cannot be read, or a line of it is not an event.
    pub fn read_stream(
        &self,
        stream: &StreamKey,
        from_version: i64,
        count: i64,
    ) -> Result<Vec<Recorded>, LogError> {
        let wanted = usize::try_from(count).unwrap_or(0);
        let mut events = Vec::new();
        // Most lines are of other streams: they are told apart by their text, and only what may fit is parsed.
        let text =
            serde_json::to_string(stream).map_err(io::Error::from).map_err(file_error(&self.folder))?;
        for manifest in self.manifests.iter() {
            let path = self.folder.join(&manifest.file);
            let file = BufReader::new(File::open(&path).map_err(file_error(&path))?);
            for (line, position) in BufReader::new(GzDecoder::new(file)).lines().zip(manifest.first..) {
                if events.len() == wanted {
                    return Ok(events);
                }
                let line = line.map_err(file_error(&path))?;
                if !line.contains(&text) {
                    continue;
                }
                let mut event: Recorded = serde_json::from_str(&line).map_err(|error| LogError::Damaged {
                    position,
                    what: format!("{}: {error}", path.display()),
                })?;
                if event.stream == *stream && event.version >= from_version {
                    event.leaf = event.computed_leaf();
                    events.push(event);
                }
            }
        }
        Ok(events)
    }

    /// Checks a file against its manifest's SHA-256; says what is wrong, if anything is.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn file_fault(&self, manifest: &Manifest) -> Result<Option<String>, LogError> {
        let path = self.folder.join(&manifest.file);
        let mut file = File::open(&path).map_err(file_error(&path))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).map_err(file_error(&path))? {
                0 => break,
                count => hash.update(&buffer[..count]),
            }
        }
        let sha256: [u8; 32] = hash.finalize().into();
        Ok((sha256 != manifest.sha256).then(|| {
            format!("{} has the SHA-256 {}, not its manifest's", path.display(), hexadecimal::encode(&sha256))
        }))
    }
}
