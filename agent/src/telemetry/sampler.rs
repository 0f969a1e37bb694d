//! The sampler: one thread that reads every source on a fixed schedule.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use events::telemetry::TelemetrySample;

use super::Source;
use crate::clock;

/// Samples that belong into one event: one at 1 Hz or slower, up to a second of them above.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Nominal milliseconds between samples.
    pub interval_ms: u32,
    /// The samples, oldest first; never empty.
    pub samples: Vec<TelemetrySample>,
}

/// A running sampler. Dropping it stops it too, after handing over what it holds.
pub struct Sampler {
    stop: mpsc::Sender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling: the first sample now, then one every `interval`. `emit` is called on the sampler's thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        sources: Vec<Box<dyn Source>>,
        interval: Duration,
        emit: impl FnMut(Window) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("telemetry".into())
            .spawn(move || run(sources, interval, &stopped, emit))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops sampling. When this returns, every sample taken was handed over and none will follow.
    pub fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        // A thread that is gone already needs no word.
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the telemetry thread panicked: samples are missing from here on");
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(
    mut sources: Vec<Box<dyn Source>>,
    interval: Duration,
    stopped: &mpsc::Receiver<()>,
    mut emit: impl FnMut(Window),
) {
    let interval_ms = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX).max(1);
    let per_window = usize::try_from(1000 / interval_ms).unwrap_or(1).max(1);
    let mut samples = Vec::with_capacity(per_window);
    let start = Instant::now();
    let mut tick: u32 = 0;
    loop {
        samples.push(sample(&mut sources));
        if samples.len() >= per_window {
            emit(Window { interval_ms, samples: std::mem::take(&mut samples) });
        }
        tick = next_tick(start.elapsed(), interval, tick);
        let due = start + interval * tick;
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if !samples.is_empty() {
        emit(Window { interval_ms, samples });
    }
}

/// The next moment of the schedule that still lies ahead; those that were missed are left out.
fn next_tick(elapsed: Duration, interval: Duration, tick: u32) -> u32 {
    let passed = elapsed.as_nanos() / interval.as_nanos().max(1);
    u32::try_from(passed).unwrap_or(u32::MAX - 1).max(tick) + 1
}

/// Reads every source at one moment.
fn sample(sources: &mut [Box<dyn Source>]) -> TelemetrySample {
    let mut sample = TelemetrySample {
        at: clock::now(),
        gpus: Vec::new(),
        cpus: Vec::new(),
        tpus: vec![],
        system: Default::default(),
    };
    for source in sources {
        source.read(&mut sample);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_does_not_drift_and_leaves_out_what_it_missed() {
        let second = Duration::from_secs(1);
        assert_eq!(next_tick(Duration::from_millis(3), second, 0), 1);
        assert_eq!(next_tick(Duration::from_millis(1_004), second, 1), 2);
        assert_eq!(next_tick(Duration::from_millis(4_700), second, 2), 5);
        // Woken a little early: the same moment is not taken twice.
        assert_eq!(next_tick(Duration::from_millis(1_999), second, 2), 3);
    }

    #[test]
    fn above_one_hertz_a_window_holds_a_second_of_samples() {
        let (send, receive) = mpsc::channel();
        let sampler = Sampler::start(Vec::new(), Duration::from_millis(100), move |window| {
            let _ = send.send(window);
        })
        .unwrap();
        let window = receive.recv().unwrap();
        sampler.stop();
        assert_eq!((window.interval_ms, window.samples.len()), (100, 10));
        assert!(window.samples.iter().map(|s| s.at).is_sorted());
        // The remainder is handed over when it stops.
        assert!(receive.iter().all(|rest| rest.samples.len() < 10));
    }
}
