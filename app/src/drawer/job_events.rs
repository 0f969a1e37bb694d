//! The events of a job's own stream.

use events::api::History;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::Head;
use super::proof::EventList;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::parts::states::{Skeleton, trouble_view};
use crate::state::filters::percent;
use crate::state::result_key::{is_import, stream_of};

/// The events of a job.
#[component]
pub fn JobEvents(job: String) -> impl IntoView {
    let page = Page::expect();
    let stream = stream_of(&job);
    let history = RwSignal::new(None::<Result<History, Trouble>>);
    let again = RwSignal::new(0u32);
    let request = format!("/api/history?stream={}", percent(&stream));
    Effect::new(move |_| {
        again.track();
        page.live.epoch.track();
        let request = request.clone();
        spawn_local(async move {
            let answer = api::get::<History>(&request, page.live.at_least()).await;
            history.try_set(Some(answer));
        });
    });
    // An imported result is one event: nothing follows.
    if !is_import(&job) {
        let followed = stream.clone();
        page.live.listen(vec![format!("{job}:job")], move |events| {
            if events.iter().any(|e| e.stream == followed) {
                again.try_update(|n| *n += 1);
            }
        });
    }
    let tabs = vec![
        (
            "Provenance",
            vec![
                ("drawer", "proof".to_owned()),
                ("job", job.clone()),
                ("metric", "output_tokens_per_second".to_owned()),
            ],
            false,
        ),
        ("Events", vec![("drawer", "events".to_owned()), ("job", job)], true),
    ];
    view! {
        <Head title="Events of this job" note=format!("stream {stream}") tabs/>
        <div class="drawer-body">
            {move || match history.get() {
                None => view! { <Skeleton lines=8/> }.into_any(),
                Some(Err(trouble)) => trouble_view(&trouble, move || again.update(|n| *n += 1)),
                Some(Ok(history)) => view! { <EventList events=history.events/> }.into_any(),
            }}
        </div>
    }
    .into_any()
}
