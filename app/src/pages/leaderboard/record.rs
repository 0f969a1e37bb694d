//! Who led: the record of single results over time, read back from the newest.

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::Settings;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::charts::Figure;
use crate::charts::record::{self, Step};
use crate::charts::view::Chart;
use crate::parts::states::trouble_view;
use crate::parts::tables;
use crate::row::Row;
use crate::state::board::Board;
use crate::state::colours::Kind;
use crate::state::naming::Naming;

/// Records that are read back at most.
const MOST_RECORDS: usize = 40;

/// The chart. It is read again when the ranking was.
#[component]
pub(super) fn WhoLed(settings: Settings, entries: Rows) -> impl IntoView {
    let page = Page::expect();
    let found = RwSignal::new(None::<Result<Vec<Row>, Trouble>>);
    let again = RwSignal::new(0u32);
    // The ranking of this page is no matter to the record: another one of the same board is not read anew.
    let board = Memo::new(move |_| settings.board.with(|board| Board { page: 1, ..board.clone() }));
    let leader = Memo::new(move |_| {
        entries.rows.with(|rows| rows.iter().flatten().next().map(|row| (row.text("job"), row.text("value"))))
    });
    let turn = StoredValue::new(0u32);
    Effect::new(move |_| {
        again.track();
        leader.track();
        let (board, at_least) = (board.get(), page.live.at_least());
        let mine = turn.try_update_value(|turn| {
            *turn += 1;
            *turn
        });
        spawn_local(async move {
            let answer = read(&board, at_least).await;
            // An answer to what was asked before comes too late.
            if turn.try_get_value() == mine {
                found.try_set(Some(answer));
            }
        });
    });
    let figure = Memo::new(move |_| {
        let (Some(Ok(rows)), Some(by)) = (found.get(), settings.by()) else { return Figure::default() };
        let naming = Naming::of(&rows);
        let step = |row: &Row| {
            Some(Step {
                at: row.millis("finished_at")?,
                value: row.number(by.key)?,
                name: naming.result(row),
                job: row.text("job"),
                colour: page.colours.of(Kind::Model, &row.text("model_code")),
            })
        };
        let steps: Vec<Step> = rows.iter().filter_map(step).collect();
        record::figure(&steps, by, now_ms())
    });
    let unit = Signal::derive(move || {
        let unit = settings.by().map_or("", |by| by.unit());
        format!("{unit}, the best single result so far · a point shows its proof")
    });
    let words = Signal::derive(move || match found.get() {
        None => "Reading.".to_owned(),
        _ => "No result qualifies yet.".to_owned(),
    });
    let address = settings.address;
    let pick = Callback::new(move |job: String| {
        if let Some(by) = untrack(|| settings.by()) {
            tables::open_proof(address, &job, by.key);
        }
    });
    view! {
        <section class="below" data-testid="who-led">
            {move || found.get().and_then(Result::err).map(|trouble| trouble_view(&trouble, move || again.update(|n| *n += 1)))}
            <Chart title="Who led" unit figure pick words testid="chart-record"/>
        </section>
    }
    .into_any()
}

/// The records, the first one first.
async fn read(board: &Board, at_least: i64) -> Result<Vec<Row>, Trouble> {
    let mut records: Vec<Row> = Vec::new();
    while records.len() < MOST_RECORDS {
        let before = records.last().map(|row| row.text("finished_at"));
        let (mut rows, _) = api::rows(&board.record_request(before.as_deref()), at_least, false).await?;
        let Some(row) = rows.pop() else { break };
        records.push(row);
    }
    records.reverse();
    Ok(records)
}
