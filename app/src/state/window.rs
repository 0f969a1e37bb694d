//! Long lists, drawn a screenful at a time and read in chunks as they come in sight.

use std::collections::BTreeMap;

/// The part of a long list that is drawn: the rest is empty room of the right height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// The first row drawn.
    pub first: usize,
    /// The row after the last one drawn.
    pub end: usize,
}

/// Rows drawn beyond each edge of what is seen, where there is time.
pub const BEYOND: usize = 12;

impl Window {
    /// Which of `total` rows of `row` pixels are seen in a box of `height` pixels scrolled down by `top`, and so many
    /// `beyond` each edge.
    pub fn seen(total: usize, row: f64, top: f64, height: f64, beyond: usize) -> Self {
        let first = ((top / row).floor().max(0.0) as usize).min(total);
        let rows = (height / row).ceil().max(0.0) as usize + 1;
        Self { first: first.saturating_sub(beyond), end: first.saturating_add(rows + beyond).min(total) }
    }

    /// The same, moved only every so many rows: most steps of a scroll then change nothing.
    pub fn in_steps(self, step: usize, total: usize) -> Self {
        Self { first: self.first / step * step, end: self.end.div_ceil(step).saturating_mul(step).min(total) }
    }
}

/// Rows read at once: a screenful and some, so that what is in sight comes soon.
pub const CHUNK: usize = 50;

/// Chunks kept at most: what is far from sight is read again when it comes back.
const MOST_CHUNKS: usize = 80;

/// Where a chunk stands.
#[derive(Debug)]
struct Chunk<T> {
    rows: Vec<T>,
    /// Whether it was asked for since it was last doubted.
    asked: bool,
}

/// The rows of a long list, as far as they were read.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: BTreeMap<usize, Chunk<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: BTreeMap::new() }
    }
}

impl<T> Chunks<T> {
    /// The chunks that a window needs and that nobody asked for yet; from now on they are asked for.
    pub fn ask(&mut self, window: Window) -> Vec<usize> {
        if window.end <= window.first {
            return Vec::new();
        }
        let needed = window.first / CHUNK..=(window.end - 1) / CHUNK;
        let (first, last) = (*needed.start(), *needed.end());
        let mut wanted = Vec::new();
        for number in needed {
            let chunk = self.chunks.entry(number).or_insert(Chunk { rows: Vec::new(), asked: false });
            if !chunk.asked {
                chunk.asked = true;
                wanted.push(number);
            }
        }
        let distance = |number: usize| first.saturating_sub(number).max(number.saturating_sub(last));
        while self.chunks.len() > MOST_CHUNKS.max(last - first + 1) {
            let Some(farthest) = self.chunks.keys().copied().max_by_key(|n| distance(*n)) else { break };
            self.chunks.remove(&farthest);
        }
        wanted
    }

    /// Takes a chunk's rows.
    pub fn put(&mut self, number: usize, rows: impl IntoIterator<Item = T>) {
        self.chunks.insert(number, Chunk { rows: rows.into_iter().collect(), asked: true });
    }

    /// A chunk did not come: it may be asked for again.
    pub fn lost(&mut self, number: usize) {
        if let Some(chunk) = self.chunks.get_mut(&number) {
            chunk.asked = false;
        }
    }

    /// Everything may have changed: what is there stays until it is read again.
    pub fn doubt(&mut self) {
        self.chunks.values_mut().for_each(|chunk| chunk.asked = false);
    }

    /// Another list.
    pub fn clear(&mut self) {
        self.chunks.clear();
    }

    /// A row, where it was read.
    pub fn get(&self, nth: usize) -> Option<&T> {
        self.chunks.get(&(nth / CHUNK))?.rows.get(nth % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hundred_thousand_lines_are_drawn_a_screenful_at_a_time() {
        let window = Window::seen(100_000, 18.0, 900_000.0, 320.0, BEYOND);
        assert!(
            window.first <= 50_000 && window.end >= 50_018 && window.end - window.first < 80,
            "{window:?}"
        );
        assert_eq!(Window::seen(0, 18.0, 0.0, 320.0, BEYOND), Window::default());
        assert_eq!(Window::seen(10, 18.0, 5_000.0, 320.0, BEYOND).end, 10);
    }

    #[test]
    fn a_chunk_is_asked_for_once_until_it_is_doubted_or_lost() {
        let mut chunks = Chunks::default();
        let window = Window { first: CHUNK + CHUNK / 2, end: 2 * CHUNK + CHUNK / 2 };
        assert_eq!(chunks.ask(window), [1, 2]);
        assert!(chunks.ask(window).is_empty());
        chunks.put(1, CHUNK..2 * CHUNK);
        chunks.lost(2);
        assert_eq!(chunks.ask(window), [2]);
        assert_eq!(
            (chunks.get(window.first).copied(), chunks.get(2 * CHUNK).copied()),
            (Some(window.first), None)
        );
        chunks.doubt();
        assert_eq!(chunks.ask(window), [1, 2]);
        assert_eq!(chunks.get(window.first).copied(), Some(window.first), "what is there stays");
    }

    proptest! {
        #[test]
        fn everything_seen_is_drawn(total in 0usize..200_000, top in 0.0f64..4_000_000.0, height in 0.0f64..2_000.0, step in 1usize..16, beyond in 0usize..30) {
            let window = Window::seen(total, 18.0, top, height, beyond);
            for window in [window, window.in_steps(step, total)] {
                prop_assert!(window.first <= window.end || window.end == total);
                for pixel in [top, top + height] {
                    let row = (pixel / 18.0).floor() as usize;
                    prop_assert!(row >= total || (window.first <= row && row < window.end));
                }
            }
        }

        #[test]
        fn what_was_asked_for_last_is_kept_and_memory_stays_bounded(tops in proptest::collection::vec(0usize..10_000, 1..120)) {
            let mut chunks = Chunks::default();
            for top in tops {
                let window = Window { first: top, end: top + 80 };
                for number in chunks.ask(window) {
                    chunks.put(number, number * CHUNK..(number + 1) * CHUNK);
                }
                for nth in window.first..window.end {
                    prop_assert_eq!(chunks.get(nth).copied(), Some(nth));
                }
                prop_assert!(chunks.chunks.len() <= MOST_CHUNKS);
            }
        }
    }
}
