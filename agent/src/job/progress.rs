//! Follows the file a tool writes its progress to.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use crate::logs::LineSplitter;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A file that is followed line by line.
pub(super) struct Follower {
    path: PathBuf,
    offset: u64,
    splitter: LineSplitter,
}

impl Follower {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, splitter: LineSplitter::default() }
    }

    /// Hands over each line for ever; drop the future to stop. Lines are handed over whole and once.
    pub(super) async fn follow(&mut self, mut take: impl FnMut(&str)) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.catch_up(&mut take);
        }
    }

    /// Hands over the lines that are there now.
    pub(super) fn catch_up(&mut self, take: &mut impl FnMut(&str)) {
        // Most looks find nothing new; they cost one system call, and no trip through another thread.
        let grown = std::fs::metadata(&self.path).is_ok_and(|meta| meta.len() > self.offset);
        if !grown {
            return;
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(1 << 20).read_to_end(&mut bytes)
        });
        if let Err(error) = read {
            tracing::debug!(%error, path = %self.path.display(), "progress cannot be read");
            return;
        }
        self.offset += bytes.len() as u64;
        for line in self.splitter.push(&bytes) {
            take(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_is_handed_over_when_it_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut follower = Follower::new(file.path().into());
        let mut lines = Vec::new();
        for part in ["{\"a\":", "1}\n{", "\"b\":2}\n"] {
            file.write_all(part.as_bytes()).unwrap();
            follower.catch_up(&mut |line: &str| lines.push(line.to_owned()));
        }
        assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}"]);
    }
}
