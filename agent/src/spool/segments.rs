//! The spool's files: `000000000001.seg` and so on, one JSON report a line; `settled.json`, the place up to
//! which everything is settled, and what deleted segments held, durable before a segment is deleted; `settled.quick`, the
//! same as it is between two deletions, which a power cut may take; `rejected.jsonl`, what will never be accepted, and
//! `rejected.1.jsonl`, what was in it before it had grown too large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use events::report::ReportItem;
use serde::{Deserialize, Serialize};

use super::SpoolError;
use super::tally::{AttemptId, Tallies, Tally};

/// `rejected.jsonl` begins anew at this size; what was in it is kept once more beside it, so that both are bounded.
const REJECTED_BYTES: u64 = 16 << 20;

/// A place in the segments. Everything before it is settled, durable or read, as the case may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// What `settled.json` holds.
#[derive(Debug, Serialize, Deserialize, Default)]
pub(super) struct Settled {
    pub(super) place: Place,
    /// Segments up to and including this one are counted in `tallies`, whether they still exist or not.
    pub(super) counted_through: u64,
    pub(super) tallies: Vec<(AttemptId, Tally)>,
}

/// What a segment was found to hold.
pub(super) struct Scan {
    pub(super) number: u64,
    pub(super) tallies: Tallies,
    /// Bytes of whole lines.
    pub(super) len: u64,
    /// Where each line that can be read ends.
    pub(super) ends: Vec<u64>,
}

/// The spool's folder.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn create(path: &Path) -> Result<Self, SpoolError> {
        fs::create_dir_all(path).map_err(|source| SpoolError { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned() })
    }

    pub(super) fn segment(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:012}.seg"))
    }

    pub(super) fn error(&self, source: io::Error) -> SpoolError {
        SpoolError { path: self.path.clone(), source }
    }

    /// The numbers of the segments that exist, in order.
    pub(super) fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if let Some(number) = name.strip_suffix(".seg").and_then(|stem| stem.parse().ok()) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A new, empty segment, open for appending; its name is durable.
    pub(super) fn new_segment(&self, number: u64) -> io::Result<File> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(self.segment(number))?;
        File::open(&self.path)?.sync_all()?;
        Ok(file)
    }

    /// Reads a segment once. A last line without its end was never reported as kept; it is cut off.
    pub(super) fn scan(&self, number: u64) -> io::Result<Scan> {
        let path = self.segment(number);
        let mut scan = Scan { number, tallies: Tallies::default(), len: 0, ends: Vec::new() };
        let file = File::open(&path)?;
        // What a crashed agent wrote need not be durable yet.
        file.sync_data()?;
        let mut reader = BufReader::with_capacity(256 << 10, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                tracing::warn!(path = %path.display(), bytes = read, "cutting off a report that a crash left half-written");
                OpenOptions::new().write(true).open(&path)?.set_len(scan.len)?;
                break;
            }
            scan.len += read as u64;
            match serde_json::from_slice::<ReportItem>(&line) {
                Ok(item) => {
                    scan.tallies.count(&item.body);
                    scan.ends.push(scan.len);
                }
                Err(error) => {
                    tracing::error!(path = %path.display(), at = scan.len, %error, "a spooled report is damaged and is passed over");
                }
            }
        }
        Ok(scan)
    }

    /// Reads whole lines from `from` up to `until` in one segment, at most `bytes` of them but at least one line.
    /// Gives each line with the offset of its end.
    pub(super) fn read_lines(
        &self,
        from: Place,
        until: u64,
        items: usize,
        bytes: usize,
    ) -> io::Result<Vec<(Vec<u8>, u64)>> {
        let mut file = File::open(self.segment(from.segment))?;
        file.seek(SeekFrom::Start(from.offset))?;
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let (mut lines, mut offset, mut taken) = (Vec::new(), from.offset, 0);
        while lines.len() < items && offset < until {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line)?;
            if read == 0 || (taken + read > bytes && !lines.is_empty()) {
                break;
            }
            taken += read;
            offset += read as u64;
            lines.push((line, offset));
        }
        Ok(lines)
    }

    pub(super) fn remove_segment(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.segment(number))
    }

    fn settled_path(&self) -> PathBuf {
        self.path.join("settled.json")
    }

    fn quick_path(&self) -> PathBuf {
        self.path.join("settled.quick")
    }

    /// What was settled. The quick note, damaged or lost, costs a resend and no more: what deleted segments held is in the
    /// durable one.
    pub(super) fn read_settled(&self) -> Settled {
        let read = |path: PathBuf| serde_json::from_slice::<Settled>(&fs::read(path).ok()?).ok();
        let durable = read(self.settled_path()).unwrap_or_default();
        // One of before the last deletion knows nothing of what was deleted.
        let newer = |quick: &Settled| quick.counted_through == durable.counted_through;
        match read(self.quick_path()).filter(newer) {
            Some(quick) => Settled { place: durable.place.max(quick.place), ..durable },
            None => durable,
        }
    }

    /// Remembers what is settled. `durably` before a segment that it counts is deleted.
    pub(super) fn write_settled(&self, settled: &Settled, durably: bool) -> io::Result<()> {
        let json = serde_json::to_vec(settled)?;
        if durably {
            return crate::state_dir::write_atomically(&self.settled_path(), &json);
        }
        let temporary = self.quick_path().with_extension("quick.tmp");
        fs::write(&temporary, json)?;
        fs::rename(temporary, self.quick_path())
    }

    /// Appends lines to the file of reports that will never be accepted, durably.
    pub(super) fn set_aside(&self, lines: &str) -> io::Result<()> {
        use std::io::Write;
        let path = self.path.join("rejected.jsonl");
        if path.metadata().is_ok_and(|file| file.len() >= REJECTED_BYTES) {
            let before = self.path.join("rejected.1.jsonl");
            tracing::warn!(path = %before.display(), "the file of rejected reports is full and is put aside; the one before it goes");
            fs::rename(&path, before)?;
        }
        let new = !path.exists();
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_data()?;
        if new {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }
}
