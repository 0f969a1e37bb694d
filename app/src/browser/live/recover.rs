//! What breaks a stream, and how it comes back: a connection that is cut, a control plane that refuses, a machine that
//! slept, a leading tab that is gone.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Live, Role, SILENCE_MS, Status};
use crate::browser::{api, now_ms};
use crate::state::retry::wait_ms;
use crate::state::tabs::Message;

/// A clock that leaps so far between two looks, a second apart, stood still: the machine slept.
const LEAP_MS: f64 = 10_000.0;
/// The head comes every 15 s: after a leap, what has been silent for longer is not waited for.
const STALE_MS: f64 = 16_000.0;

impl Live {
    /// The stream broke: it is tried again, ever more slowly.
    pub(super) fn broken(self) {
        let now = now_ms();
        let state = self.inner.try_update_value(|inner| {
            let topics = inner.source.take().map(|source| source.topics.clone());
            inner.tries += 1;
            let asked = (inner.wait_until - now).max(0.0);
            (inner.tries, wait_ms(inner.tries, js_sys::Math::random()).max(asked), topics)
        });
        let Some((tries, wait, topics)) = state else { return };
        if tries > 1 {
            // Until it is known why: an EventSource does not say.
            if !matches!(self.status.try_get_untracked(), Some(Status::Refused(_))) {
                self.status.try_set(Status::Reconnecting(tries - 1));
                self.say(&Message::Broken { tries: tries - 1 });
            }
            if let Some(topics) = topics {
                self.ask_why(topics);
            }
        }
        set_timeout(move || self.try_again(), Duration::from_millis(wait as u64));
    }

    fn try_again(self) {
        let idle = self
            .inner
            .try_with_value(|inner| inner.source.is_none() && now_ms() >= inner.wait_until)
            .unwrap_or(false);
        if idle {
            self.settle();
        }
    }

    /// Asks for the stream as a plain request, whose refusal can be read.
    fn ask_why(self, topics: Vec<String>) {
        spawn_local(async move {
            let Some(refusal) = api::refusal_of(&super::source::address(&topics, None)).await else { return };
            let still = self.inner.try_update_value(|inner| {
                if inner.tries == 0 {
                    return false; // It came back meanwhile.
                }
                if let Some(seconds) = refusal.retry_after_s {
                    inner.wait_until = now_ms() + seconds * 1000.0;
                }
                true
            });
            if still != Some(true) {
                return;
            }
            match refusal.status {
                0 => {}
                401 | 403 => {
                    self.status.try_set(Status::Refused(refusal.status));
                    self.doubted.try_update(|n| *n += 1);
                }
                status => {
                    self.status.try_set(Status::Refused(status));
                    if let Some(seconds) = refusal.retry_after_s {
                        set_timeout(
                            move || self.try_again(),
                            Duration::from_millis((seconds * 1000.0) as u64 + 50),
                        );
                    }
                }
            }
        });
    }

    /// Notices by itself that the machine woke up, or that there is a network again.
    pub(super) fn wake_up(self) {
        let handles = ["online", "pageshow", "focus"]
            .map(|name| window_event_listener_untyped(name, move |_| self.look_now()));
        let shown = window_event_listener_untyped("visibilitychange", move |_| self.look_now());
        on_cleanup(move || {
            handles.into_iter().for_each(|handle| handle.remove());
            shown.remove();
        });
    }

    /// Something changed outside: a waiting try is made at once, a stream that has been silent is not trusted.
    fn look_now(self) {
        let state = self.inner.try_with_value(|inner| {
            let silent = now_ms() - inner.last_message > STALE_MS;
            (inner.role, inner.source.is_some(), silent)
        });
        match state {
            Some((Role::Leader, true, true)) => self.renew(),
            Some((Role::Leader, false, _)) => self.try_again(),
            _ => {}
        }
    }

    /// Opens the stream anew where it stopped, without a word: nothing is known to be wrong yet.
    fn renew(self) {
        self.inner.try_update_value(|inner| (inner.source, inner.tries) = (None, 0));
        self.broken();
    }

    /// Once a second. A stream can die without a word: while a laptop sleeps, or behind a proxy.
    pub(super) fn watch(self) {
        let now = now_ms();
        let seen = self.inner.try_update_value(|inner| {
            let silence = now - inner.last_message;
            let slept = now - std::mem::replace(&mut inner.watched, now) > LEAP_MS && inner.watched > 0.0;
            let gone = inner.role == Role::Leader && inner.wishes.forget_silent(now);
            (inner.role, silence, slept && !document().hidden(), inner.source.is_some(), gone)
        });
        match seen {
            Some((Role::Leader, silence, _, true, _)) if silence > SILENCE_MS => self.broken(),
            Some((Role::Leader, silence, true, true, _)) if silence > STALE_MS => self.renew(),
            Some((Role::Leader, .., true)) => self.settle(),
            Some((Role::Follower, silence, ..)) => {
                // Said again every few seconds: the leader forgets tabs that fell silent.
                if ((now / 1000.0) as u64).is_multiple_of(4) {
                    self.want();
                }
                if silence > SILENCE_MS {
                    self.status.try_set(Status::Reconnecting(1));
                }
            }
            _ => {}
        }
        if matches!(self.status.try_get_untracked(), Some(Status::CatchingUp | Status::Connecting)) {
            self.tell();
        }
    }
}
