//! A job's three log streams, with search and follow.

use leptos::prelude::*;

use crate::format::{clock, count};
use crate::state::job_feed::{JobFeed, LogLine};

/// The streams, as the agent names them.
pub const SOURCES: [(&str, &str); 3] = [("framework", "Framework"), ("tool", "Tool"), ("agent", "Agent")];

/// Lines drawn at most; a search looks through all of them.
const MOST_DRAWN: usize = 1000;

/// The lines that hold a text, and how many there are.
pub fn hits<'a>(lines: &'a [LogLine], find: &str) -> Vec<&'a LogLine> {
    let find = find.to_lowercase();
    lines.iter().filter(|l| find.is_empty() || l.text.to_lowercase().contains(&find)).collect()
}

/// A line in three parts around the first hit, compared without regard to case.
pub fn around(line: &str, find: &str) -> Option<(String, String, String)> {
    if find.is_empty() {
        return None;
    }
    let at = line.to_lowercase().find(&find.to_lowercase())?;
    let end = at + find.len();
    Some((line.get(..at)?.to_owned(), line.get(at..end)?.to_owned(), line.get(end..)?.to_owned()))
}

/// How bad a line is, by the words in it.
pub fn level(line: &str) -> &'static str {
    let head: String = line.chars().take(120).collect::<String>().to_lowercase();
    if head.contains("error") || head.contains("fatal") || head.contains("panic") {
        "error"
    } else if head.contains("warn") {
        "warning"
    } else {
        "info"
    }
}

/// The log streams of a job.
#[component]
pub fn Logs(
    /// The attempt.
    feed: RwSignal<JobFeed>,
    /// Which stream is shown.
    source: RwSignal<String>,
) -> impl IntoView {
    let find = RwSignal::new(String::new());
    let follow = RwSignal::new(true);
    let list = NodeRef::<leptos::html::Ol>::new();
    let total = Memo::new(move |_| feed.with(|f| source.with(|s| f.logs.get(s).map_or(0, Vec::len))));
    let found = Memo::new(move |_| {
        feed.with(|f| source.with(|s| f.logs.get(s).map_or(0, |l| find.with(|q| hits(l, q).len()))))
    });
    Effect::new(move |_| {
        total.track();
        source.track();
        if follow.get()
            && let Some(list) = list.get()
        {
            request_animation_frame(move || list.set_scroll_top(list.scroll_height()));
        }
    });
    let tabs = SOURCES.map(|(code, word)| {
        let lines = Memo::new(move |_| feed.with(|f| f.logs.get(code).map_or(0, Vec::len)));
        view! {
            <label data-testid=format!("log-{code}")>
                <input type="radio" name="log-source" prop:checked=move || source.get() == code on:change=move |_| source.set(code.to_owned())/>
                {word}
                <span class="quiet">{move || format!(" {}", count(lines.get() as i64))}</span>
            </label>
        }
    });
    let shown = move || {
        feed.with(|f| {
            let Some(lines) = source.with(|s| f.logs.get(s)) else { return Vec::new() };
            let lines = find.with(|q| hits(lines, q));
            let skip = lines.len().saturating_sub(MOST_DRAWN);
            lines[skip..].iter().map(|l| (*l).clone()).collect::<Vec<LogLine>>()
        })
    };
    view! {
        <div class="log-box" data-testid="logs">
            <div class="actions">
                <span class="segmented" role="radiogroup" aria-label="Stream">{tabs.collect_view()}</span>
                <input class="control control-find" type="search" placeholder="Search" aria-label="Search log" data-testid="log-search" bind:value=find/>
                <span class="meta">{move || if find.with(String::is_empty) { String::new() } else { format!("{} hits", count(found.get() as i64)) }}</span>
                <button type="button" class="button" data-testid="log-follow" aria-pressed=move || follow.get().to_string() on:click=move |_| follow.update(|f| *f = !*f)>
                    "Follow"
                </button>
            </div>
            <Show when=move || total.get() == 0>
                <p class="meta one-line">"No line yet."</p>
            </Show>
            <ol class="log" node_ref=list tabindex="0" aria-label="Log lines"
                on:wheel=move |event| if event.delta_y() < 0.0 { follow.set(false) }>
                <For each=shown key=|l| l.number let:line>
                    <li data-level=level(&line.text)>
                        <time title=line.number.to_string()>{line.at.map_or_else(|| line.number.to_string(), clock)}</time>
                        {
                            let text = line.text.clone();
                            view! {
                                <span>{move || match find.with(|q| around(&text, q)) {
                                    Some((before, hit, after)) => view! { {before}<mark>{hit}</mark>{after} }.into_any(),
                                    None => text.clone().into_any(),
                                }}</span>
                            }
                        }
                    </li>
                </For>
            </ol>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_marks_the_hit_whatever_its_case() {
        assert_eq!(
            around("Avg Generation Throughput: 5", "generation"),
            Some(("Avg ".into(), "Generation".into(), " Throughput: 5".into()))
        );
        assert_eq!(around("Größe", "x"), None);
    }

    #[test]
    fn bad_lines_are_told_by_their_words() {
        assert_eq!(
            (level("E  fatal: out of memory"), level("WARN slow"), level("ready")),
            ("error", "warning", "info")
        );
    }
}
