//! The queue behind the spool: segments on disk, and memory for when the disk takes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use events::report::{ReportBody, ReportItem};

use super::segments::{Folder, Place, Settled};
use super::tally::{AttemptId, Tallies, Tally};
use super::{Batch, SpoolError};

/// A segment is closed at this size; settled segments are deleted whole.
const SEGMENT_BYTES: u64 = 4 << 20;
/// A settled segment larger than this is not kept only because it is the newest.
const IDLE_SEGMENT_BYTES: u64 = 256 << 10;
/// What is settled is written down at most this often.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// Reports held in memory while the disk takes nothing: logs and progress up to half of this, the rest up to all of it.
const MEMORY_BYTES: usize = 64 << 20;

/// How a report of a batch is settled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// It ends at this place.
    Disk(Place),
    /// It is the oldest one in memory.
    Memory,
}

/// Something to be made durable, outside the lock.
pub(super) struct SyncWork {
    file: File,
    through: Place,
    count: u64,
}

impl SyncWork {
    pub(super) fn run(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The spool's state. Not shared by itself; see [`super::Spool`].
pub(super) struct Queue {
    folder: Folder,
    max_bytes: u64,
    file: File,
    /// The end of what was written.
    written: Place,
    /// The end of what is durable.
    durable: Place,
    /// The end of what is settled.
    settled: Place,
    /// Reports taken since the spool was opened: on the disk, or in memory while that takes nothing.
    taken: u64,
    /// How many of those were written, or settled from memory.
    taken_written: u64,
    /// How many of those are durable, or settled.
    taken_durable: u64,
    /// Segments before the one being written: their lengths.
    closed_segments: BTreeMap<u64, u64>,
    /// What each existing segment holds, the newest included.
    segment_tallies: BTreeMap<u64, Tallies>,
    /// What deleted segments held.
    deleted_tallies: Tallies,
    counted_through: u64,
    on_disk: u64,
    memory: VecDeque<(ReportItem, usize)>,
    memory_bytes: usize,
    /// Whether reports are being sent from memory right now.
    memory_in_flight: bool,
    /// A failed write could not be cut off yet.
    torn: bool,
    dropped: u64,
    closed: bool,
    /// When `settled.json` was last written.
    noted: Option<Instant>,
}

impl Queue {
    pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Self, SpoolError> {
        let folder = Folder::create(path)?;
        let remembered = folder.read_settled();
        let mut numbers = folder.numbers().map_err(|e| folder.error(e))?;
        // Counted and settled, but the crash came before the deletion.
        numbers.retain(|&number| {
            let gone = number <= remembered.counted_through;
            if gone && let Err(error) = folder.remove_segment(number) {
                tracing::warn!(number, %error, "a settled spool segment could not be deleted");
            }
            !gone
        });

        let mut segment_tallies = BTreeMap::new();
        let mut closed_segments = BTreeMap::new();
        let first = numbers.first().copied().unwrap_or(remembered.counted_through + 1);
        let mut settled = remembered.place.max(Place { segment: first, offset: 0 });
        let mut on_disk = 0;
        for &number in &numbers {
            let scan = folder.scan(number).map_err(|e| folder.error(e))?;
            let from = match number.cmp(&settled.segment) {
                std::cmp::Ordering::Less => u64::MAX,
                std::cmp::Ordering::Equal => settled.offset,
                std::cmp::Ordering::Greater => 0,
            };
            on_disk += scan.ends.iter().filter(|&&end| end > from).count() as u64;
            closed_segments.insert(scan.number, scan.len);
            segment_tallies.insert(number, scan.tallies);
        }
        let newest = numbers.last().copied().unwrap_or(remembered.counted_through) + 1;
        if settled.segment >= newest {
            settled = Place { segment: newest, offset: 0 };
        }
        let file = folder.new_segment(newest).map_err(|e| folder.error(e))?;
        segment_tallies.insert(newest, Tallies::default());
        let end = Place { segment: newest, offset: 0 };
        let mut queue = Self {
            folder,
            max_bytes,
            file,
            written: end,
            durable: end,
            settled,
            taken: 0,
            taken_written: 0,
            taken_durable: 0,
            closed_segments,
            segment_tallies,
            deleted_tallies: Tallies::from_list(remembered.tallies),
            counted_through: remembered.counted_through,
            on_disk,
            memory: VecDeque::new(),
            memory_bytes: 0,
            memory_in_flight: false,
            torn: false,
            dropped: 0,
            closed: false,
            noted: None,
        };
        queue.delete_settled_segments();
        Ok(queue)
    }

    /// Keeps a report. Tells whether there was room for it.
    pub(super) fn append(&mut self, item: &ReportItem) -> bool {
        let Some(line) = to_line(item) else { return false };
        let kept = if !self.memory.is_empty() {
            self.hold(item.clone(), line.len())
        } else if let Err(error) = self.write(&line, item) {
            tracing::error!(%error, "the spool's disk takes nothing more: reports are held in memory. Free some room, or raise max_spool_bytes");
            self.hold(item.clone(), line.len())
        } else {
            true
        };
        self.taken += u64::from(kept);
        kept
    }

    /// Reports taken since the spool was opened.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many of those are durable, or settled.
    pub(super) fn taken_durable(&self) -> u64 {
        self.taken_durable
    }

    fn write(&mut self, line: &[u8], item: &ReportItem) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.written.offset)?;
            self.torn = false;
        }
        let used: u64 = self.closed_segments.values().sum::<u64>() + self.written.offset;
        if used + line.len() as u64 > self.max_bytes {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "max_spool_bytes is reached"));
        }
        if self.written.offset >= SEGMENT_BYTES {
            self.start_segment()?;
        }
        if let Err(error) = self.file.write_all(line) {
            // Never half a report: cut off what was written of it, now or before the next write.
            self.torn = self.file.set_len(self.written.offset).is_err();
            return Err(error);
        }
        self.written.offset += line.len() as u64;
        self.on_disk += 1;
        self.taken_written += 1;
        self.segment_tallies.entry(self.written.segment).or_default().count(&item.body);
        Ok(())
    }

    fn start_segment(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        let number = self.written.segment + 1;
        let file = self.folder.new_segment(number)?;
        self.closed_segments.insert(self.written.segment, self.written.offset);
        self.file = file;
        self.written = Place { segment: number, offset: 0 };
        self.durable = self.written;
        self.taken_durable = self.taken_written;
        self.segment_tallies.insert(number, Tallies::default());
        Ok(())
    }

    fn hold(&mut self, item: ReportItem, bytes: usize) -> bool {
        let bulky = matches!(item.body, ReportBody::Log { .. } | ReportBody::Progress { .. });
        let room = if bulky { MEMORY_BYTES / 2 } else { MEMORY_BYTES };
        if self.memory_bytes + bytes > room {
            self.dropped += 1;
            tracing::error!(
                dropped = self.dropped,
                kind = item.body.kind(),
                "neither disk nor memory has room for a report: it is lost"
            );
            return false;
        }
        self.memory_bytes += bytes;
        self.memory.push_back((item, bytes));
        true
    }

    pub(super) fn holds_in_memory(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Moves what is held in memory to the disk, as far as that takes it.
    pub(super) fn move_to_disk(&mut self) {
        if self.memory_in_flight {
            return;
        }
        while let Some((item, bytes)) = self.memory.front() {
            let (item, bytes) = (item.clone(), *bytes);
            let Some(line) = to_line(&item) else { return };
            if self.write(&line, &item).is_err() {
                return;
            }
            self.memory.pop_front();
            self.memory_bytes -= bytes;
        }
    }

    pub(super) fn start_sync(&self) -> Option<SyncWork> {
        if self.durable == self.written {
            return None;
        }
        // A file that cannot be duplicated cannot be synced by itself either; the next round tries again.
        let file = self.file.try_clone().ok()?;
        Some(SyncWork { file, through: self.written, count: self.taken_written })
    }

    pub(super) fn finish_sync(&mut self, work: SyncWork, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            // Better reported without that guarantee than not reported.
            tracing::error!(%error, "the spool could not be made durable: a power cut now would lose reports");
        }
        self.durable = self.durable.max(work.through);
        self.taken_durable = self.taken_durable.max(work.count);
    }

    pub(super) fn next_batch(&mut self, items: usize, bytes: usize) -> Batch {
        self.memory_in_flight = false;
        let mut batch = Batch::default();
        let mut from = self.settled;
        let mut room = bytes;
        while batch.items.len() < items && from < self.durable {
            let until = match self.closed_segments.get(&from.segment) {
                Some(len) => *len,
                None if from.segment == self.durable.segment => self.durable.offset,
                None => from.offset,
            };
            if from.offset >= until {
                from = Place { segment: from.segment + 1, offset: 0 };
                continue;
            }
            let lines = match self.folder.read_lines(from, until, items - batch.items.len(), room) {
                Ok(lines) => lines,
                Err(error) => {
                    tracing::error!(%error, "the spool cannot be read");
                    break;
                }
            };
            let taken: usize = lines.iter().map(|(line, _)| line.len()).sum();
            if lines.is_empty() || (taken > room && !batch.items.is_empty()) {
                break;
            }
            room = room.saturating_sub(taken);
            for (line, end) in lines {
                from.offset = end;
                // A damaged line was spoken of when the spool was opened; it is settled with its neighbour.
                if let Ok(item) = serde_json::from_slice::<ReportItem>(&line) {
                    batch.items.push(item);
                    batch.marks.push(Mark::Disk(from));
                }
            }
            if room == 0 {
                break;
            }
        }
        if batch.items.is_empty() && from >= self.written && !self.memory.is_empty() {
            self.move_to_disk();
            for (item, size) in self.memory.iter().take(items) {
                if *size > room && !batch.items.is_empty() {
                    break;
                }
                room = room.saturating_sub(*size);
                batch.items.push(item.clone());
                batch.marks.push(Mark::Memory);
            }
            self.memory_in_flight = !batch.items.is_empty();
        }
        batch
    }

    pub(super) fn settle(&mut self, marks: &[Mark]) {
        for mark in marks {
            match mark {
                Mark::Disk(place) => {
                    self.settled = self.settled.max(*place);
                    self.on_disk = self.on_disk.saturating_sub(1);
                }
                Mark::Memory => {
                    if let Some((item, bytes)) = self.memory.pop_front() {
                        self.memory_bytes -= bytes;
                        // What is sent from memory comes after all that was written, which is settled then.
                        self.taken_written += 1;
                        self.taken_durable = self.taken_written;
                        self.segment_tallies.entry(self.written.segment).or_default().count(&item.body);
                    }
                }
            }
        }
        self.memory_in_flight = false;
        let all = self.settled == self.written && self.memory.is_empty();
        if all && self.written.offset > IDLE_SEGMENT_BYTES {
            match self.start_segment() {
                Ok(()) => self.settled = self.written,
                Err(error) => tracing::warn!(%error, "no new spool segment could be started"),
            }
        }
        let noted_lately = self.noted.is_some_and(|noted| noted.elapsed() < NOTE_EVERY);
        if !self.delete_settled_segments() && !noted_lately {
            self.note_settled();
        }
    }

    /// Writes down what is settled. Not after each answer: what is not written down is sent again and recognised.
    fn note_settled(&mut self) {
        self.noted = Some(Instant::now());
        if let Err(error) = self.folder.write_settled(&self.remember(), false) {
            tracing::warn!(%error, "what is settled could not be remembered: it may be sent again");
        }
    }

    fn remember(&self) -> Settled {
        Settled {
            place: self.settled,
            counted_through: self.counted_through,
            tallies: self.deleted_tallies.to_list(),
        }
    }

    /// Deletes segments that are settled whole, counting what they held first. Tells whether there were any.
    fn delete_settled_segments(&mut self) -> bool {
        let done: Vec<u64> = self
            .closed_segments
            .iter()
            .filter(|&(&number, &len)| {
                number < self.settled.segment
                    || (number == self.settled.segment && self.settled.offset >= len)
            })
            .map(|(&number, _)| number)
            .collect();
        if done.is_empty() {
            return false;
        }
        for number in &done {
            if let Some(tallies) = self.segment_tallies.remove(number) {
                self.deleted_tallies.merge(&tallies);
            }
            self.closed_segments.remove(number);
            self.counted_through = self.counted_through.max(*number);
        }
        self.deleted_tallies.forget_ended();
        self.settled = self.settled.max(Place { segment: self.counted_through + 1, offset: 0 });
        if let Err(error) = self.folder.write_settled(&self.remember(), true) {
            tracing::warn!(%error, "what is settled could not be remembered: it may be sent again");
            return true;
        }
        for number in done {
            if let Err(error) = self.folder.remove_segment(number) {
                tracing::warn!(number, %error, "a settled spool segment could not be deleted");
            }
        }
        true
    }

    pub(super) fn pending(&self) -> u64 {
        self.on_disk + self.memory.len() as u64
    }

    pub(super) fn tally(&self, id: &AttemptId) -> Tally {
        let mut all = self.deleted_tallies.clone();
        for tallies in self.segment_tallies.values() {
            all.merge(tallies);
        }
        for (item, _) in &self.memory {
            all.count(&item.body);
        }
        all.get(id)
    }

    /// The spool's files.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn close(&mut self) {
        self.note_settled();
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}

fn to_line(item: &ReportItem) -> Option<Vec<u8>> {
    match serde_json::to_vec(item) {
        Ok(mut line) => {
            line.push(b'\n');
            Some(line)
        }
        Err(error) => {
            tracing::error!(%error, kind = item.body.kind(), "a report cannot be written as JSON and is lost");
            None
        }
    }
}
