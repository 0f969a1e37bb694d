//! Rows of a view on the page: read once, folded live, read again when an event says so. What is shown stays until
//! the new is there.

use std::time::Duration;

use events::api::EventView;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::api::{self, Trouble};
use super::page::Page;
use crate::row::Row;

/// Rows of a view.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The rows; nothing before the first answer.
    pub rows: RwSignal<Option<Vec<Row>>>,
    /// How many there are in all, where that was asked.
    pub total: RwSignal<Option<usize>>,
    /// How often they were read; also where that changed nothing.
    pub read: RwSignal<u32>,
    /// Why the last reading failed.
    pub trouble: RwSignal<Option<Trouble>>,
    again: RwSignal<u32>,
    waiting: RwSignal<bool>,
}

impl Rows {
    /// Reads again.
    pub fn reload(self) {
        self.again.try_update(|n| *n += 1);
    }

    /// Reads again in a moment; several wishes make one reading.
    pub fn reload_soon(self) {
        if self.waiting.try_get_untracked() != Some(false) {
            return;
        }
        self.waiting.set(true);
        set_timeout(
            move || {
                self.waiting.try_set(false);
                self.reload();
            },
            Duration::from_millis(300),
        );
    }

    /// Folds a batch of events into the rows; tells whoever shows them only when one changed.
    pub fn fold(self, events: &[&EventView], fold: impl Fn(&mut Row, &EventView) -> bool) {
        let changed = self.rows.try_update_untracked(|rows| {
            let mut changed = false;
            for row in rows.iter_mut().flatten() {
                for event in events {
                    changed |= fold(row, event);
                }
            }
            changed
        });
        if changed == Some(true) {
            self.rows.notify();
        }
    }

    /// The first row.
    pub fn first(self) -> Option<Row> {
        self.rows.with(|rows| rows.as_ref().and_then(|r| r.first().cloned()))
    }

    /// All rows; none before the first answer.
    pub fn all(self) -> Vec<Row> {
        self.rows.with(|rows| rows.clone().unwrap_or_default())
    }
}

/// Reads a view and keeps it: again when the request changes or the live stream lost something. `None` waits.
pub fn use_rows(request: impl Fn() -> Option<String> + 'static) -> Rows {
    read_rows(request, false)
}

/// As [`use_rows`], asking also how many rows there are in all.
pub fn use_rows_counted(request: impl Fn() -> Option<String> + 'static) -> Rows {
    read_rows(request, true)
}

/// What a reading brings: rows, and how many there are in all.
type Answer = Result<(Vec<Row>, Option<usize>), Trouble>;

fn read_rows(request: impl Fn() -> Option<String> + 'static, count: bool) -> Rows {
    let page = Page::expect();
    // What came with the page is there at once, and not asked for.
    let first = untrack(&request);
    let brought = first.as_ref().and_then(|path| page.first.answer(path, count, page.live.at_least()));
    let there = first.filter(|_| brought.is_some());
    let (list, total) = brought.map_or((None, None), |(list, total)| (Some(list), total));
    let rows = Rows {
        rows: RwSignal::new(list),
        total: RwSignal::new(total),
        read: RwSignal::new(u32::from(there.is_some())),
        trouble: RwSignal::new(None),
        again: RwSignal::new(0),
        waiting: RwSignal::new(false),
    };
    let turn = StoredValue::new(0u32);
    Effect::new(move |before: Option<()>| {
        rows.again.track();
        page.live.epoch.track();
        let Some(path) = request() else { return };
        if before.is_none() && there.as_ref() == Some(&path) {
            return;
        }
        let mine = turn.try_update_value(|turn| {
            *turn += 1;
            *turn
        });
        spawn_local(async move {
            let mut answer = api::rows(&path, page.live.at_least(), count).await;
            // Views that are far behind, such as those that are being rebuilt: what there is, is better than nothing.
            let behind = |answer: &Answer| matches!(answer, Err(trouble) if trouble.error.code == "not_yet");
            let late = behind(&answer) && rows.rows.try_with_untracked(Option::is_none) == Some(true);
            if late {
                answer = api::rows(&path, 0, count).await;
                set_timeout(
                    move || {
                        if turn.try_get_value() == mine {
                            rows.reload();
                        }
                    },
                    Duration::from_secs(3),
                );
            }
            if turn.try_get_value() != mine {
                return; // A later request was made, or nobody waits any more.
            }
            match answer {
                Ok((list, total)) => {
                    // What is as it was is left alone, and with it the focus and the selection of whoever reads.
                    if rows.total.try_get_untracked() != Some(total) {
                        rows.total.try_set(total);
                    }
                    if rows.trouble.try_with_untracked(Option::is_some) == Some(true) {
                        rows.trouble.try_set(None);
                    }
                    if rows.rows.try_with_untracked(|rows| rows.as_ref() != Some(&list)) == Some(true) {
                        rows.rows.try_set(Some(list));
                    }
                    rows.read.try_update(|n| *n += 1);
                }
                Err(trouble) => {
                    let retry = trouble.may_pass();
                    rows.trouble.try_set(Some(trouble));
                    if retry {
                        set_timeout(
                            move || {
                                if turn.try_get_value() == mine {
                                    rows.reload();
                                }
                            },
                            Duration::from_secs(3),
                        );
                    }
                }
            }
        });
    });
    rows
}

/// Keeps rows live: folds events of these topics and reads again when one concerns more than the fold can do.
pub fn keep_live(
    rows: Rows,
    topics: Vec<String>,
    fold: fn(&mut Row, &EventView) -> bool,
    concerns: impl Fn(&EventView) -> bool + 'static,
) {
    keep_live_while(|| true, rows, topics, fold, concerns);
}

/// As [`keep_live`], while something holds: rows of the past do not change.
pub fn keep_live_while(
    holds: impl Fn() -> bool + 'static,
    rows: Rows,
    topics: Vec<String>,
    fold: fn(&mut Row, &EventView) -> bool,
    concerns: impl Fn(&EventView) -> bool + 'static,
) {
    Page::expect().live.listen(topics, move |events| {
        if !untrack(&holds) {
            return;
        }
        rows.fold(events, fold);
        if events.iter().any(|event| concerns(event)) {
            rows.reload_soon();
        }
    });
}
