//! What arrives, counted as it does: running rates must not wait for answers to be complete.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::record::{Outcome, Phase, Record};
use crate::stats::round;

/// A bin is at most 1/128 (0.8 %) wide: enough for a figure that is looked at for half a second.
const SUB_BITS: u32 = 7;
const BINS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

/// Running counts of a run.
#[derive(Debug, Default)]
pub struct Live {
    /// Streamed chunks with output, of all requests so far.
    chunks: AtomicU64,
    ended: Mutex<Ended>,
    ttft: Mutex<RunningMedian>,
}

/// Of the requests that ended.
#[derive(Debug, Default)]
struct Ended {
    /// How many ended well.
    succeeded: u64,
    /// Chunks they had streamed.
    chunks: u64,
    /// Of those that succeeded and told their tokens: chunks and tokens.
    counted_chunks: u64,
    counted_tokens: u64,
    /// Tokens of successes; chunks where the server told none.
    tokens: u64,
    tpot: RunningMedian,
    response_time: RunningMedian,
}

/// The running figures at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Now {
    /// Requests that ended well, of any phase.
    pub succeeded: u64,
    /// Output tokens so far: those the server told for answers that are complete, and chunks × tokens a chunk for the
    /// rest. Null before the first output.
    pub tokens: Option<f64>,
    /// Median so far of the time to first token, milliseconds.
    pub ttft_p50_ms: Option<f64>,
    /// Median so far of the time per output token, milliseconds.
    pub tpot_p50_ms: Option<f64>,
    /// Median so far of the response time, milliseconds.
    pub response_time_p50_ms: Option<f64>,
}

impl Live {
    /// A chunk with output arrived.
    pub fn chunk(&self) {
        self.chunks.fetch_add(1, Relaxed);
    }

    /// The first visible output of a measured request arrived, so long after its start.
    pub fn first_token(&self, ttft: Duration) {
        lock(&self.ttft).add(ttft);
    }

    /// A request ended.
    pub fn ended(&self, record: &Record) {
        let measured = match &record.outcome {
            Outcome::Success(measured) | Outcome::Failed(_, measured) => measured,
            Outcome::Incomplete => return,
        };
        let mut ended = lock(&self.ended);
        let chunks = if record.streamed { measured.chunks } else { 0 };
        ended.chunks += chunks;
        let Some(timings) = record.timings() else { return };
        ended.succeeded += 1;
        match measured.usage.and_then(|usage| usage.completion_tokens) {
            Some(tokens) => {
                ended.counted_chunks += chunks;
                ended.counted_tokens += tokens;
                ended.tokens += tokens;
            }
            None => ended.tokens += chunks,
        }
        if record.phase == Phase::Measured {
            ended.response_time.add(timings.response_time);
            if let Some(tpot) = timings.tpot {
                ended.tpot.add(tpot);
            }
        }
        drop(ended);
        if record.phase == Phase::Measured && !record.streamed {
            timings.ttft.into_iter().for_each(|ttft| self.first_token(ttft));
        }
    }

    /// The figures now.
    pub fn now(&self) -> Now {
        let chunks = self.chunks.load(Relaxed);
        let ended = lock(&self.ended);
        let tokens_a_chunk = match ended.counted_chunks {
            0 => 1.0,
            chunks => ended.counted_tokens as f64 / chunks as f64,
        };
        let under_way = chunks.saturating_sub(ended.chunks) as f64 * tokens_a_chunk;
        let tokens = ended.tokens as f64 + under_way;
        Now {
            succeeded: ended.succeeded,
            tokens: (tokens > 0.0).then_some(tokens),
            ttft_p50_ms: lock(&self.ttft).median_ms(),
            tpot_p50_ms: ended.tpot.median_ms(),
            response_time_p50_ms: ended.response_time.median_ms(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The median of all samples so far, to 0.8 %, in constant memory and microseconds.
#[derive(Debug, Default)]
struct RunningMedian {
    bins: Vec<u32>,
    n: u64,
}

impl RunningMedian {
    fn add(&mut self, sample: Duration) {
        if self.bins.is_empty() {
            self.bins = vec![0; BINS];
        }
        let value = sample.as_nanos() as u64;
        let octave = (64 - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
        let bin = ((octave as usize) << SUB_BITS) + (value >> octave) as usize;
        self.bins[bin] = self.bins[bin].saturating_add(1);
        self.n += 1;
    }

    fn median_ms(&self) -> Option<f64> {
        let (rank, mut below) = (self.n.div_ceil(2), 0);
        let bin = self.bins.iter().position(|count| {
            below += u64::from(*count);
            below >= rank && rank > 0
        })?;
        let octave = (bin >> SUB_BITS).saturating_sub(1) as u32;
        let lower = ((bin - ((octave as usize) << SUB_BITS)) as u64) << octave;
        let middle = lower as f64 + (1u64 << octave) as f64 / 2.0 - 0.5;
        Some(round(middle / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Measured;
    use crate::openai::Usage;

    fn record(chunks: u64, tokens: Option<u64>) -> Record {
        let usage = tokens.map(|tokens| Usage { completion_tokens: Some(tokens), ..Usage::default() });
        let mut record = crate::record::example(true);
        record.outcome = Outcome::Success(Box::new(Measured { chunks, usage, ..Measured::default() }));
        record
    }

    #[test]
    fn tokens_are_counted_while_they_stream() {
        let live = Live::default();
        assert_eq!(live.now().tokens, None);
        (0..5).for_each(|_| live.chunk());
        assert_eq!(live.now().tokens, Some(5.0));
    }

    #[test]
    fn a_complete_answers_own_count_takes_the_place_of_its_chunks() {
        let live = Live::default();
        (0..10).for_each(|_| live.chunk());
        live.ended(&record(10, Some(30)));
        assert_eq!(live.now().tokens, Some(30.0));
        // Three tokens a chunk: what streams now is taken to be the same.
        (0..2).for_each(|_| live.chunk());
        assert_eq!(live.now().tokens, Some(36.0));
    }

    #[test]
    fn an_answer_without_usage_counts_its_chunks() {
        let live = Live::default();
        (0..4).for_each(|_| live.chunk());
        live.ended(&record(4, None));
        assert_eq!(live.now().tokens, Some(4.0));
    }

    #[test]
    fn the_median_is_right_to_a_hundredth() {
        let mut median = RunningMedian::default();
        assert_eq!(median.median_ms(), None);
        (1..=1001).for_each(|ms| median.add(Duration::from_millis(ms)));
        let found = median.median_ms().unwrap();
        assert!((found / 501.0 - 1.0).abs() < 0.01, "{found}");
    }
}
