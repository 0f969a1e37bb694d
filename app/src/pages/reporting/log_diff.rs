//! The logs of two results against each other: what only one of them says.

use leptos::prelude::*;

use super::{Settings, View};
use crate::browser::remote::use_rows;
use crate::format::{count, counted};
use crate::parts::swatch_of;
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::compare::Side;
use crate::state::filters::percent;
use crate::state::job_view::SOURCES;
use crate::state::log_diff::{LogDiff, MOST_LINES, Of, Piece};

/// Lines drawn at once.
const MOST_DRAWN: usize = 400;

/// The first two of the comparison; which stream is in the address.
#[component]
pub(super) fn Logs(view: View, sides: Memo<Vec<Side>>) -> impl IntoView {
    let settings = view.settings;
    let source = Memo::new(move |_| settings.view.with(|v| v.logs.clone()));
    let lines_of = move |place: usize| {
        use_rows(move || {
            let source = source.get()?;
            let result = sides.with(|sides| {
                (sides.len() > 1).then(|| sides.get(place).map(|s| s.result.clone())).flatten()
            })?;
            Some(format!(
                "/api/v_log_lines?job=eq.{}&attempt=eq.{}&source=eq.{source}&select=line_number,line&order=line_number.asc&limit={}",
                percent(&result.text("job")),
                result.whole("attempt").unwrap_or(1),
                MOST_LINES + 1
            ))
        })
    };
    let (first, second) = (lines_of(0), lines_of(1));
    let diff = Memo::new(move |_| {
        source.get()?;
        let lines = |rows: &Option<Vec<Row>>| {
            rows.as_ref().map(|rows| rows.iter().map(|r| r.text("line")).collect::<Vec<_>>())
        };
        Some(LogDiff::of(&first.rows.with(lines)?, &second.rows.with(lines)?))
    });
    view! {
        <Show when=move || { sides.with(Vec::len) > 1 }>
            <div class="below" data-testid="log-diff">
                <div class="section-head section-head-plain"><h3>"Logs, the first two"</h3>{choice(settings, source)}</div>
                {move || diff.get().map(|diff| shown(&diff))}
            </div>
        </Show>
    }
    .into_any()
}

fn choice(settings: Settings, source: Memo<Option<String>>) -> AnyView {
    let entry = move |code: Option<&'static str>, word: &'static str| {
        view! {
            <label data-testid=format!("diff-{}", code.unwrap_or("none"))>
                <input
                    type="radio"
                    name="log-diff"
                    prop:checked=move || source.with(|s| s.as_deref() == code)
                    on:change=move |_| settings.look(|v| v.logs = code.map(str::to_owned))
                />
                {word}
            </label>
        }
    };
    view! {
        <span class="segmented push" role="radiogroup" aria-label="Log to compare">
            {entry(None, "None")}
            {SOURCES.map(|(code, word)| entry(Some(code), word)).collect_view()}
        </span>
    }
    .into_any()
}

fn shown(diff: &LogDiff) -> AnyView {
    let cut =
        diff.cut.then(|| format!(" The first {} lines of each are compared.", count(MOST_LINES as i64)));
    let words = match (diff.is_alike(), diff.pieces.is_empty()) {
        (true, true) => "Neither has a line here.".to_owned(),
        (true, false) => "Alike, but for times and numbers.".to_owned(),
        (false, _) => format!(
            "{} only in the first, {} only in the second; times and numbers make no difference.",
            counted(diff.only.0 as i64, "line"),
            counted(diff.only.1 as i64, "line")
        ),
    };
    let left_out = diff.pieces.len().saturating_sub(MOST_DRAWN);
    let lines = diff.pieces.iter().take(MOST_DRAWN).map(|piece| match piece {
        Piece::Alike(n) => {
            view! { <li class="quiet" data-of="alike">{format!("… {} alike", counted(*n as i64, "line"))}</li> }.into_any()
        }
        Piece::Line { of, number, text } => {
            let (word, mark) = match of {
                Of::Both => ("both", None),
                Of::First => ("first", Some((0, "−"))),
                Of::Second => ("second", Some((1, "+"))),
            };
            view! {
                <li data-of=word>
                    <span class="diff-mark">{mark.map(|(place, sign)| view! { {swatch_of(Colour::nth(place))}<span>{sign}</span> })}</span>
                    <span title=format!("line {number}")>{text.clone()}</span>
                </li>
            }
            .into_any()
        }
    });
    let alike = diff.is_alike();
    view! {
        <p class="meta one-line" data-testid="log-diff-words">{words}{cut}</p>
        {(!alike).then(|| view! {
            <div class="log log-diff" tabindex="0" role="region" aria-label="Lines that differ"><ol>{lines.collect_view()}</ol></div>
        })}
        {(left_out > 0).then(|| view! { <p class="meta one-line">{format!("{} more are left out.", counted(left_out as i64, "line"))}</p> })}
    }
    .into_any()
}
