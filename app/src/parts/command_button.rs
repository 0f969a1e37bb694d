//! A button that gives a command, asks once more where it cannot be undone, and says what went wrong.

use std::sync::Arc;

use events::api::CommandReply;
use leptos::prelude::*;
use serde::Serialize;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::focus_quietly;
use crate::browser::page::Page;

/// What is to be done once a command was carried out. It does not end with the button: a list that was read again
/// meanwhile, because the stream told of the command before its reply was there, has taken the button away.
#[derive(Clone)]
pub struct Done(Arc<dyn Fn(CommandReply) + Send + Sync>);

impl Done {
    /// Of a function that must not count on signals which belong to what the button stands in.
    pub fn new(done: impl Fn(CommandReply) + Send + Sync + 'static) -> Self {
        Self(Arc::new(done))
    }
}

/// Gives a command.
#[component]
pub fn CommandButton<A>(
    /// The word on it.
    word: &'static str,
    /// What is asked before it is done; nothing where it is done at once.
    #[prop(optional)]
    sure: Option<&'static str>,
    /// The command's name.
    command: &'static str,
    /// Its arguments, when the button is pressed.
    arguments: Callback<(), A>,
    /// Called with the reply.
    done: Done,
    /// Its name for tests.
    testid: &'static str,
) -> impl IntoView
where
    A: Serialize + Send + Sync + 'static,
{
    let page = Page::expect();
    let live = page.live;
    let busy = RwSignal::new(false);
    // What is asked about outlives the button: a list may be drawn anew before the answer.
    let key = sure.map(|_| {
        let arguments = untrack(|| arguments.run(()));
        format!("{command} {}", serde_json::to_string(&arguments).unwrap_or_default())
    });
    let key = StoredValue::new(key);
    let asking = Memo::new(move |_| {
        page.asking.with(|asking| asking.is_some() && key.with_value(|key| key == asking))
    });
    let ask = move |asked: bool| page.asking.set(asked.then(|| key.get_value()).flatten());
    // The keyboard goes to the question, and back.
    let (first, again) = (NodeRef::<leptos::html::Button>::new(), NodeRef::<leptos::html::Button>::new());
    let led = StoredValue::new(false);
    Effect::new(move |_| {
        let to = if asking.get() { again.get() } else { first.get() };
        if let Some(button) = to.filter(|button| button.is_connected())
            && led.try_update_value(std::mem::take) == Some(true)
        {
            focus_quietly(&button);
        }
    });
    let lead = move |asked: bool| {
        led.set_value(true);
        ask(asked);
    };
    let trouble = RwSignal::new(None::<Trouble>);
    let done = StoredValue::new(done);
    let give = move || {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        if sure.is_some() {
            lead(false);
        }
        trouble.set(None);
        let (arguments, done) = (arguments.run(()), done.get_value());
        spawn_local(async move {
            let answer = api::command(command, &arguments).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    (done.0)(reply);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let press = move |_| if sure.is_some() { lead(true) } else { give() };
    view! {
        <span class="command-button">
            <Show when=move || !asking.get()>
                <button type="button" class="button" data-testid=testid node_ref=first aria-disabled=move || busy.get().to_string() on:click=press>{word}</button>
            </Show>
            <Show when=move || asking.get()>
                <span>{sure}</span>
                <button type="button" class="button" data-testid=format!("{testid}-sure") node_ref=again on:click=move |_| give()>{word}</button>
                <button type="button" class="button button-quiet" on:click=move |_| lead(false)>"No"</button>
            </Show>
            <span role="alert">
                {move || trouble.get().map(|t| view! { <span class="status" data-status="failed" title=t.error.hint>{t.error.message}</span> })}
            </span>
        </span>
    }
    .into_any()
}
