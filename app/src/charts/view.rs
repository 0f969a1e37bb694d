//! The component that shows a figure: title, unit, the plot (drawn once it is near the viewport), and its table.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Figure, plot};
use crate::browser::address::Address;
use crate::browser::is_small;
use crate::parts::{swatch_of, tables};
use crate::state::zoom::Zoom;

/// The zoom of a chart, or of the charts of a group: what it is, and how a reader changes it.
#[derive(Clone, Copy)]
pub struct Zooming {
    /// What is looked at now; nothing for all there is.
    pub now: Signal<Option<Zoom>>,
    /// The reader looks at something else.
    pub set: Callback<Option<Zoom>>,
}

impl Zooming {
    /// The zoom of one chart of a page, in the address under a key of its own.
    pub fn in_address(address: Address, key: &'static str) -> Self {
        Self {
            now: Signal::derive(move || address.query.with(|query| query.get(key).and_then(Zoom::read))),
            set: Callback::new(move |zoom: Option<Zoom>| {
                address.replace(|query| {
                    query.set(key, zoom.as_ref().map(Zoom::write).as_deref());
                });
            }),
        }
    }

    /// A zoom that nothing else shares.
    pub fn own() -> Self {
        let zoom = RwSignal::new(None);
        Self { now: zoom.into(), set: Callback::new(move |next| zoom.set(next)) }
    }
}

/// A chart. `words` stand in its place while there is nothing to draw.
#[component]
pub fn Chart(
    /// Its name.
    #[prop(into)]
    title: Signal<String>,
    /// Its unit, with what a reader must know.
    #[prop(into)]
    unit: Signal<String>,
    /// What it shows. It is redrawn when this changes; feed it at most a few times a second.
    #[prop(into)]
    figure: Signal<Figure>,
    /// Charts of one group share the cross-hair.
    #[prop(default = "")]
    group: &'static str,
    /// What is looked at; its own where nothing is given.
    #[prop(optional)]
    zooming: Option<Zooming>,
    /// A point with a name was clicked.
    #[prop(optional)]
    pick: Option<Callback<String>>,
    /// `low`, `middle` or `high`.
    #[prop(default = "middle")]
    height: &'static str,
    /// What stands there while nothing can be drawn.
    #[prop(into)]
    words: Signal<String>,
    /// Its name for tests.
    testid: &'static str,
) -> impl IntoView {
    let element = NodeRef::<leptos::html::Div>::new();
    let near = RwSignal::new(false);
    let as_table = RwSignal::new(false);
    let trouble = RwSignal::new(None::<String>);
    let empty = Memo::new(move |_| figure.with(Figure::is_empty));
    let zooming = zooming.unwrap_or_else(Zooming::own);

    watch_near(element, near);
    let heard = Closure::<dyn FnMut(String, String)>::new(move |what: String, text: String| {
        match (what.as_str(), pick) {
            ("zoom", _) => zooming.set.run(Zoom::read(&text)),
            ("pick", Some(pick)) => pick.run(text),
            _ => {}
        }
    });
    let heard = StoredValue::new_local(heard);
    Effect::new(move |_| {
        if !near.get() || empty.get() || as_table.get() {
            return;
        }
        let Some(node) = element.get() else { return };
        let json = figure.with(|f| serde_json::json!({"traces": f.traces, "layout": f.layout}).to_string());
        let zoom = zooming.now.get().map_or_else(String::new, |zoom| zoom.write());
        let tell = heard.with_value(|heard| heard.as_ref().unchecked_ref::<js_sys::Function>().clone());
        spawn_local(async move {
            if let Err(error) = plot::draw(&node, &json, &zoom, group, &tell).await {
                let text = js_sys::Reflect::get(&error, &"message".into()).ok().and_then(|m| m.as_string());
                trouble.try_set(Some(text.unwrap_or_else(|| "the chart could not be drawn".to_owned())));
            }
        });
    });
    let held = StoredValue::new_local(None::<web_sys::HtmlElement>);
    Effect::new(move |_| {
        if let Some(node) = element.get() {
            held.set_value(Some(node.into()));
        }
    });
    on_cleanup(move || {
        held.try_with_value(|node| {
            if let Some(node) = node {
                plot::purge(node);
            }
        });
    });

    let label = move || figure.with(|f| f.summary.clone());
    view! {
        <figure class="figure" data-height=height data-testid=testid>
            <figcaption>
                <b>{title}</b>
                " "
                <span class="unit">{unit}</span>
                <span class="push">
                    {move || figure.with(|f| {
                        (!f.legend.is_empty()).then(|| {
                            let entries = f.legend.iter().map(|(name, colour)| view! { <span>{swatch_of(*colour)}{name.clone()}</span> });
                            view! { <span class="legend">{entries.collect_view()}</span> }
                        })
                    })}
                    <Show when=move || zooming.now.with(Option::is_some)>
                        <button type="button" class="figure-toggle" data-testid="zoom-out" on:click=move |_| zooming.set.run(None)>
                            "All"
                        </button>
                    </Show>
                    <Show when=move || !empty.get()>
                        <button
                            type="button"
                            class="figure-toggle"
                            aria-label=move || format!("{} of {}", if as_table.get() { "Chart" } else { "Table" }, title.get())
                            on:click=move |_| as_table.update(|t| *t = !*t)
                        >
                            {move || if as_table.get() { "Chart" } else { "Table" }}
                        </button>
                    </Show>
                </span>
            </figcaption>
            <Show when=move || empty.get()>
                <p class="figure-words">{words}</p>
            </Show>
            <Show when=move || trouble.get().is_some()>
                <p class="figure-words">{move || trouble.get()}" · the table has the numbers"</p>
            </Show>
            <div
                class="figure-plot"
                node_ref=element
                role="group"
                aria-label=label
                hidden=move || empty.get() || as_table.get() || trouble.get().is_some()
            ></div>
            <Show when=move || as_table.get() && !empty.get()>
                <FigureTable figure pick/>
            </Show>
        </figure>
    }
    .into_any()
}

#[component]
fn FigureTable(figure: Signal<Figure>, pick: Option<Callback<String>>) -> impl IntoView {
    // A figure of a job leads to its proof, as it does everywhere; what a point stands for is told as by a click on it.
    let number = move |text: String, proof: Option<(&str, &'static str)>, name: Option<&str>| match (
        proof,
        pick.zip(name),
    ) {
        (None, Some((pick, name))) => {
            let name = name.to_owned();
            view! {
                <button type="button" class="pick-point" data-testid="pick-point" title="show what made this number" on:click=move |_| pick.run(name.clone())>
                    {text}
                </button>
            }
            .into_any()
        }
        (Some((job, metric)), _) => {
            let explained = tables::is_explained(job, metric);
            view! {
                <a
                    href=tables::proof_href(job, metric)
                    data-noscroll=""
                    data-testid="figure"
                    data-metric=metric
                    title="show what made this number"
                    aria-current=move || explained.get().then_some("true")
                >
                    {text}
                </a>
            }
            .into_any()
        }
        (None, None) => text.into_any(),
    };
    view! {
        <div class="figure-table" tabindex="0">
            <table class="data-table keep-shape">
                <caption class="visually-hidden">{move || figure.with(|f| f.summary.clone())}</caption>
                <thead>
                    <tr>
                        {move || figure.with(|f| f.head.iter().enumerate().map(|(column, h)| view! { <th scope="col" class:number=f.is_of_numbers(column)>{h.clone()}</th> }).collect_view())}
                    </tr>
                </thead>
                <tbody>
                    {move || {
                        figure.with(|f| {
                            let numbers: Vec<bool> = (0..f.head.len()).map(|column| f.is_of_numbers(column)).collect();
                            f.rows
                                .iter()
                                .enumerate()
                                .map(|(nth, row)| {
                                    let cells = row.iter().enumerate().map(|(column, text)| {
                                        let right = numbers.get(column).copied().unwrap_or(false);
                                        view! { <td class:number=right>{number(text.clone(), f.proof(nth, column), f.pick(nth, column))}</td> }
                                    }).collect_view();
                                    view! { <tr>{cells}</tr> }
                                })
                                .collect_view()
                        })
                    }}
                </tbody>
            </table>
        </div>
    }
}

/// How far outside of the viewport a chart is near, once the reader moves or the page has long been quiet.
const NEAR: &str = "400px";
/// The page is quiet by then: what is near, but not in sight, may be drawn too.
const QUIET: std::time::Duration = std::time::Duration::from_secs(4);

/// Keeps `near` at whether the element is in sight. A chart that is only near waits until the reader moves or the page
/// has long been there: nothing that is not seen delays what is. On a phone every chart does: the library that draws
/// it is seconds of work for a small processor, and there is something to read meanwhile.
pub fn watch_near(element: NodeRef<leptos::html::Div>, near: RwSignal<bool>) {
    let kept =
        StoredValue::new_local(None::<(web_sys::IntersectionObserver, Closure<dyn FnMut(js_sys::Array)>)>);
    let forget = move || {
        kept.try_update_value(|kept| {
            if let Some((observer, _)) = kept.take() {
                observer.disconnect();
            }
        });
    };
    let moved = RwSignal::new(false);
    let small = is_small();
    let move_once = move || {
        if moved.try_get_untracked() == Some(false) {
            moved.set(true);
        }
    };
    set_timeout(move_once, QUIET);
    let wheel = window_event_listener(leptos::ev::wheel, move |_| move_once());
    let touch = window_event_listener(leptos::ev::touchmove, move |_| move_once());
    let scroll = window_event_listener(leptos::ev::scroll, move |_| move_once());
    let key = window_event_listener(leptos::ev::keydown, move |_| move_once());
    Effect::new(move |_| {
        let Some(node) = element.get() else { return };
        let margin = match (moved.get(), small) {
            (true, _) => NEAR,
            (false, true) => return,
            (false, false) => "0px",
        };
        forget();
        let seen = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
            // The last entry is how it is now. What is out of sight is not redrawn.
            let last =
                entries.iter().last().map(|e| e.unchecked_into::<web_sys::IntersectionObserverEntry>());
            let close = last.is_some_and(|entry| entry.is_intersecting());
            if near.try_get_untracked() == Some(!close) {
                near.set(close);
            }
        });
        let options = web_sys::IntersectionObserverInit::new();
        options.set_root_margin(margin);
        // Observed is the figure, not the plot: a hidden plot is nowhere.
        let target = node.parent_element().unwrap_or_else(|| (*node).clone().into());
        match web_sys::IntersectionObserver::new_with_options(seen.as_ref().unchecked_ref(), &options) {
            Ok(observer) => {
                observer.observe(&target);
                kept.set_value(Some((observer, seen)));
            }
            Err(_) => near.set(true),
        }
    });
    on_cleanup(move || {
        forget();
        wheel.remove();
        touch.remove();
        scroll.remove();
        key.remove();
    });
}
