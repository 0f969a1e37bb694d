//! Which tab leads, what the tabs say to each other, and what the leader follows for all of them.

use std::time::Duration;

use leptos::prelude::*;

use super::tabs::{Channel, ask_to_lead};
use super::{Live, Role, Status};
use crate::browser::now_ms;
use crate::state::tabs::{Message, covers};

/// A tab that does not lead after this many milliseconds follows.
const ELECTION_MS: u64 = 150;

impl Live {
    /// Finds out whether this tab leads.
    pub(super) fn meet_tabs(self) {
        let channel = Channel::open(move |message| self.hear(message));
        let alone = channel.is_none();
        self.inner.try_update_value(|inner| {
            inner.tab = format!("{:x}", (js_sys::Math::random() * 1e15) as u64);
            inner.channel = channel;
        });
        if alone || !ask_to_lead(move || self.become_role(Role::Leader)) {
            self.become_role(Role::Leader);
            return;
        }
        set_timeout(
            move || {
                if self.role() == Role::Undecided {
                    self.become_role(Role::Follower);
                }
            },
            Duration::from_millis(ELECTION_MS),
        );
        let bye = window_event_listener_untyped("pagehide", move |_| {
            let tab = self.inner.try_with_value(|inner| inner.tab.clone()).unwrap_or_default();
            self.say(&Message::Bye { tab });
        });
        on_cleanup(move || bye.remove());
    }

    pub(super) fn role(self) -> Role {
        self.inner.try_with_value(|inner| inner.role).unwrap_or_default()
    }

    fn become_role(self, role: Role) {
        self.inner.try_update_value(|inner| (inner.role, inner.last_message) = (role, now_ms()));
        self.settle();
    }

    pub(super) fn say(self, message: &Message) {
        self.inner.try_with_value(|inner| {
            if let Some(channel) = &inner.channel {
                channel.say(message);
            }
        });
    }

    /// What another tab said.
    fn hear(self, message: Message) {
        match (self.role(), message) {
            (Role::Leader, Message::Want { tab, topics }) => {
                let changed = self.inner.try_update_value(|inner| inner.wishes.want(&tab, topics, now_ms()));
                if changed == Some(true) {
                    // Also where the stream brings it already: the tab must learn from which position on.
                    self.tell_open();
                    self.settle();
                }
            }
            (Role::Leader, Message::Bye { tab }) => {
                self.inner.try_update_value(|inner| inner.wishes.bye(&tab));
                self.settle();
            }
            (Role::Leader, Message::Restart) => self.restart_own(),
            (Role::Follower, Message::Open { topics, after }) => self.on_open(topics, after),
            (Role::Follower, Message::Relay { name, data }) => match name.as_str() {
                "event" => self.on_event(&data),
                "head" => self.on_head(&data),
                _ => self.on_resync(&data),
            },
            (Role::Follower, Message::Broken { tries }) => {
                self.status.try_set(Status::Reconnecting(tries));
            }
            _ => {}
        }
    }

    /// Tells the other tabs what the stream brings, and from where on.
    pub(super) fn tell_open(self) {
        let open = self.inner.try_with_value(|inner| {
            inner
                .source
                .as_ref()
                .map(|s| Message::Open { topics: s.topics.clone(), after: inner.cursor.resume() })
        });
        if let Some(Some(message)) = open {
            self.say(&message);
        }
    }

    /// The leader's stream brings these topics after a position.
    fn on_open(self, topics: Vec<String>, after: Option<i64>) {
        let own = self.own_topics();
        let missed = self.inner.try_update_value(|inner| {
            let newly = covers(&topics, &own) && !covers(&inner.open, &own);
            inner.cursor.connect();
            // What this tab read lies before where the leader's stream goes on: what is between the two never comes.
            let here = inner.cursor.resume();
            let missed = newly && after.is_none_or(|after| here.is_none_or(|here| here < after));
            if let (true, Some(after)) = (missed, after) {
                inner.cursor.jump(after);
            }
            inner.last_message = now_ms();
            let covered = covers(&topics, &own);
            inner.open = topics;
            (missed, covered)
        });
        match missed {
            Some((true, _)) => self.lost(),
            Some((_, false)) => self.want(),
            _ => {}
        }
    }

    pub(super) fn want(self) {
        let topics = self.own_topics();
        let tab = self.inner.try_with_value(|inner| inner.tab.clone()).unwrap_or_default();
        self.say(&Message::Want { tab, topics });
    }

    /// Holds the stream that all tabs want.
    pub(super) fn lead(self) {
        let own = self.own_topics();
        let state = self.inner.try_with_value(|inner| {
            (inner.wishes.union(&own), inner.source.as_ref().map(|s| s.topics.clone()))
        });
        let Some((wanted, open)) = state else { return };
        if wanted.is_empty() {
            self.inner.try_update_value(|inner| inner.source = None);
        } else if open.as_ref() != Some(&wanted) {
            self.connect(wanted);
        }
    }
}
