//! Ctrl-C and SIGTERM: the first one drains, the second one ends at once.

use std::io::{self, Write};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use tokio_util::sync::CancellationToken;

use crate::finish::EXIT_INTERRUPTED;

/// How long requests under way may go on after an interrupt.
const DRAIN_AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// The two ways to end a run early.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Start no more requests.
    pub stop: CancellationToken,
    /// Give up those under way.
    pub abort: CancellationToken,
    /// Somebody interrupted the run.
    pub cancelled: CancellationToken,
}

/// Watches for signals from now on. The first one stops `control`, and aborts it two seconds later.
///
/// A thread of its own waits for them: a second Ctrl-C ends the process whatever the event loop is doing. Call it before
/// any other thread is started, because threads inherit which signals they leave alone.
pub fn watch(control: Control, quiet: bool) -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    std::thread::Builder::new().name("signals".into()).stack_size(128 * 1024).spawn(move || {
        if signals.wait().is_err() {
            return;
        }
        control.cancelled.cancel();
        control.stop.cancel();
        let abort = control.abort.clone();
        let aborting = std::thread::Builder::new().name("abort".into()).spawn(move || {
            std::thread::sleep(DRAIN_AFTER_INTERRUPT);
            abort.cancel();
        });
        if aborting.is_err() {
            control.abort.cancel();
        }
        if !quiet {
            let _ =
                writeln!(io::stderr(), "\ninterrupted: requests under way get 2 s; again to exit at once");
        }
        let _ = signals.wait();
        std::process::exit(EXIT_INTERRUPTED);
    })?;
    Ok(())
}
