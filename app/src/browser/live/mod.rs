//! The live stream: one EventSource a browser, the topics of whoever listens, resumed at the last position.
//!
//! One tab leads: it holds the stream, for the topics of all tabs, and passes every message on. The others do with those
//! what they would do with their own. Where tabs cannot talk, each leads for itself.
//!
//! Events go to listeners in batches, at most four a second, within an animation frame where the tab is visible.

mod batch;
mod lead;
mod recover;
mod source;
mod tabs;

use std::rc::Rc;
use std::time::Duration;

use events::api::{EventView, LiveEvent, LiveHead};
use leptos::prelude::*;

use self::source::Source;
use self::tabs::Channel;
use super::now_ms;
use crate::state::cursor::{Cursor, Verdict};
use crate::state::tabs::{Message, Wishes};

/// How the stream stands; the indicator in the top bar says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Before the first answer.
    Connecting,
    /// Everything up to the head of the log is on the page.
    AtHead,
    /// Behind the head, events are coming.
    CatchingUp,
    /// No connection; how often it was tried since it broke.
    Reconnecting(u32),
    /// The control plane refuses the stream, with this HTTP status: it is asked again.
    Refused(u16),
}

/// Milliseconds between two batches.
const BATCH_MS: f64 = 250.0;
/// A stream that says nothing for so long is dead: the head comes every 15 s.
const SILENCE_MS: f64 = 40_000.0;
/// A stream that has said nothing for so long has nothing left to catch up with.
const QUIET_MS: f64 = 800.0;
/// Events kept for a tab that does not draw; beyond that everything is read again.
const MOST_QUEUED: usize = 20_000;

/// What this tab is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Role {
    /// Not known yet.
    #[default]
    Undecided,
    Leader,
    Follower,
}

type Listener = Rc<dyn Fn(&[&EventView])>;

#[derive(Default)]
struct Inner {
    source: Option<Source>,
    role: Role,
    tab: String,
    channel: Option<Channel>,
    /// What the others want, while this tab leads.
    wishes: Wishes,
    /// What the stream of the leader brings, while this tab follows.
    open: Vec<String>,
    cursor: Cursor,
    listeners: Vec<(u64, Vec<String>, Listener)>,
    next_id: u64,
    queue: Vec<EventView>,
    flushing: bool,
    last_flush: f64,
    last_message: f64,
    settling: bool,
    floor: i64,
    tries: u32,
    /// When the clock was last looked at: a leap means that the machine slept.
    watched: f64,
    /// Not before this moment, as the control plane asked.
    wait_until: f64,
}

/// The live stream; copied freely.
#[derive(Clone, Copy)]
pub struct Live {
    /// How it stands.
    pub status: RwSignal<Status>,
    /// The log's last position, as far as is known; 0 before the first message.
    pub head: RwSignal<i64>,
    /// Rises whenever everything on the page must be read again.
    pub epoch: RwSignal<u32>,
    /// Rises when the stream was refused for who asks: the session may have ended.
    pub doubted: RwSignal<u32>,
    inner: StoredValue<Inner, LocalStorage>,
}

impl Live {
    /// A stream that connects once somebody listens.
    pub fn new() -> Self {
        let live = Self {
            status: RwSignal::new(Status::Connecting),
            head: RwSignal::new(0),
            epoch: RwSignal::new(0),
            doubted: RwSignal::new(0),
            inner: StoredValue::new_local(Inner::default()),
        };
        live.meet_tabs();
        live.wake_up();
        if let Ok(timer) = set_interval_with_handle(move || live.watch(), Duration::from_secs(1)) {
            on_cleanup(move || timer.clear());
        }
        live
    }

    /// Listens to topics as long as the calling component lives.
    pub fn listen(self, topics: Vec<String>, listener: impl Fn(&[&EventView]) + 'static) {
        let id = self.inner.try_update_value(|inner| {
            inner.next_id += 1;
            inner.listeners.push((inner.next_id, topics, Rc::new(listener)));
            inner.next_id
        });
        self.settle();
        on_cleanup(move || {
            self.inner.try_update_value(|inner| inner.listeners.retain(|(other, ..)| Some(*other) != id));
            self.settle();
        });
    }

    /// Begins at a position that every reading from now on reaches: the stream brings what comes after it, and nothing
    /// has to be read twice.
    pub fn begin(self, position: i64) {
        self.inner.try_update_value(|inner| {
            if position > 0 && inner.cursor.position.is_none() && inner.source.is_none() {
                inner.cursor.jump(position);
            }
        });
    }

    /// The position that a reading must reach to miss nothing of what the stream will not send any more.
    pub fn at_least(self) -> i64 {
        self.inner.try_with_value(|inner| inner.cursor.resume().unwrap_or(0).max(inner.floor)).unwrap_or(0)
    }

    /// From now on a reading must show what a command at this position did.
    pub fn must_reach(self, position: i64) {
        self.inner.try_update_value(|inner| inner.floor = inner.floor.max(position));
    }

    /// Starts again from nothing, for another reader: after signing in or out.
    pub fn restart(self) {
        self.say(&Message::Restart);
        self.restart_own();
    }

    fn restart_own(self) {
        self.inner.try_update_value(|inner| {
            inner.source = None;
            inner.cursor = Cursor::default();
            inner.open.clear();
            inner.queue.clear();
        });
        self.settle();
    }

    /// Opens a connection for what is listened to now, once whoever comes and goes has come and gone.
    fn settle(self) {
        let waiting = self.inner.try_update_value(|inner| std::mem::replace(&mut inner.settling, true));
        if waiting != Some(false) {
            return;
        }
        set_timeout(
            move || {
                self.inner.try_update_value(|inner| inner.settling = false);
                match self.role() {
                    Role::Undecided => {}
                    Role::Follower => {
                        self.inner.try_update_value(|inner| inner.source = None);
                        self.want();
                    }
                    Role::Leader => self.lead(),
                }
            },
            Duration::from_millis(20),
        );
    }

    fn own_topics(self) -> Vec<String> {
        let topics = self.inner.try_with_value(|inner| {
            let mut topics: Vec<String> =
                inner.listeners.iter().flat_map(|(_, topics, _)| topics.clone()).collect();
            topics.sort();
            topics.dedup();
            topics
        });
        topics.unwrap_or_default()
    }

    /// Takes a message of the stream and passes it on to the other tabs.
    fn pass_on(self, name: &str, data: &str, take: fn(Self, &str)) {
        take(self, data);
        self.say(&Message::Relay { name: name.to_owned(), data: data.to_owned() });
    }

    fn on_event(self, data: &str) {
        let Ok(event) = serde_json::from_str::<LiveEvent>(data) else { return };
        let verdict = self.inner.try_update_value(|inner| {
            (inner.last_message, inner.tries) = (now_ms(), 0);
            let verdict = inner.cursor.event(&event);
            if verdict != Verdict::Seen {
                inner.queue.push(event.event);
            }
            if inner.queue.len() > MOST_QUEUED { Verdict::Lost } else { verdict }
        });
        match verdict {
            Some(Verdict::Lost) => self.lost(),
            Some(Verdict::Take) => self.flush_soon(),
            _ => {}
        }
        self.tell();
    }

    fn on_head(self, data: &str) {
        let Ok(head) = serde_json::from_str::<LiveHead>(data) else { return };
        let (verdict, fresh) = self
            .inner
            .try_update_value(|inner| {
                (inner.last_message, inner.tries) = (now_ms(), 0);
                let fresh = inner.cursor.position.is_none();
                (inner.cursor.head(&head), fresh)
            })
            .unwrap_or((Verdict::Seen, false));
        // What was read before the stream had a place may lie before it: once read again, nothing is missed.
        if verdict == Verdict::Lost || fresh {
            self.lost();
        }
        self.tell();
    }

    /// Too far behind to be told everything: everything is read again, and the stream goes on from the head.
    fn on_resync(self, data: &str) {
        if let Ok(head) = serde_json::from_str::<LiveHead>(data) {
            self.inner.try_update_value(|inner| inner.cursor.jump(head.position));
        }
        self.lost();
    }

    /// Something may be missing: everything is read again.
    fn lost(self) {
        self.inner.try_update_value(|inner| inner.queue.clear());
        self.epoch.try_update(|epoch| *epoch += 1);
    }

    fn tell(self) {
        let now = self.inner.try_with_value(|inner| {
            // What was missed is sent without a pause: a quiet stream has nothing left to send.
            let quiet = inner.cursor.greeted() && now_ms() - inner.last_message > QUIET_MS;
            let connected = inner.source.is_some() || inner.role == Role::Follower;
            (inner.cursor.head, quiet || inner.cursor.at_head(), connected)
        });
        if let Some((head, at_head, true)) = now {
            self.head.try_set(head);
            let greeted = self.inner.try_with_value(|inner| inner.cursor.greeted()).unwrap_or(false);
            let status = match (greeted, at_head) {
                (false, _) => return,
                (true, true) => Status::AtHead,
                (true, false) => Status::CatchingUp,
            };
            if self.status.try_get_untracked() != Some(status) {
                self.status.try_set(status);
            }
        }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}
