//! Events go to whoever listens in batches, within an animation frame where the tab is visible.

use std::rc::Rc;
use std::time::Duration;

use events::api::EventView;
use leptos::prelude::*;

use super::{BATCH_MS, Listener, Live};
use crate::browser::now_ms;
use crate::state::topics::wants;

impl Live {
    pub(super) fn flush_soon(self) {
        let wait = self.inner.try_update_value(|inner| {
            if std::mem::replace(&mut inner.flushing, true) {
                return None;
            }
            Some((BATCH_MS - (now_ms() - inner.last_flush)).max(0.0))
        });
        if let Some(Some(wait)) = wait {
            set_timeout(
                move || {
                    if document().hidden() {
                        self.flush();
                    } else {
                        request_animation_frame(move || self.flush());
                    }
                },
                Duration::from_millis(wait as u64),
            );
        }
    }

    fn flush(self) {
        let batch = self.inner.try_update_value(|inner| {
            (inner.flushing, inner.last_flush) = (false, now_ms());
            let listeners: Vec<(Vec<String>, Listener)> =
                inner.listeners.iter().map(|(_, topics, l)| (topics.clone(), Rc::clone(l))).collect();
            (std::mem::take(&mut inner.queue), listeners)
        });
        if let Some((events, listeners)) = batch
            && !events.is_empty()
        {
            for (topics, listener) in listeners {
                let its: Vec<&EventView> =
                    events.iter().filter(|e| topics.iter().any(|t| wants(t, &e.stream))).collect();
                if !its.is_empty() {
                    listener(&its);
                }
            }
        }
    }
}
