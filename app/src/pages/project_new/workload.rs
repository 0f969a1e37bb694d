//! The workload as it is filled in: what is served, by what, and the traffic.

use events::keys::code_from_name;
use events::tools::{FEWEST_ROUNDS, IMAGE_DETAILS, ToolCode, WorkloadKind, image_size};
use leptos::prelude::*;

use super::choices::{
    build_options, codes, frameworks_of, models_of, quantizations, set_options, source_options, versions,
};
use super::controls::{Chips, flip, select, suggested};
use super::draft::Draft;
use super::engine::{InForce, Own};
use super::fields::ToolFields;
use super::readiness::check_while_typing;
use super::tool_sets::ToolSets;
use super::{Card, Form};
use crate::browser::remote::Rows;
use crate::format::{count, maybe_count};
use crate::row::Row;

const CONCURRENCY: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const ISL: [u32; 5] = [128, 256, 512, 1024, 2048];
const OSL: [u32; 5] = [32, 64, 128, 256, 512];
const ROUNDS: [u32; 4] = [5, 10, 25, 50];
const IMAGES: [u32; 3] = [1, 2, 4];
const IMAGE_SIZES: [&str; 2] = ["512x512", "1024x1024"];

/// What can be chosen; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Choices {
    /// The models of the catalogue.
    pub(super) models: Rows,
    /// Its frameworks.
    pub(super) frameworks: Rows,
    /// Its tools.
    pub(super) tools: Rows,
    /// Its sets of engine arguments.
    pub(super) sets: Rows,
    /// The sources of inputs.
    pub(super) prompts: Rows,
}

impl Choices {
    /// Changes a draft, and then what no longer goes with it.
    pub(super) fn change(self, card: Card, servers: Rows, change: impl FnOnce(&mut Draft)) {
        let rows = |rows: Rows| rows.rows.get_untracked().unwrap_or_default();
        let servers = rows(servers);
        card.draft.update(|draft| {
            change(draft);
            let server = draft.settle_on(&servers);
            draft.suit(server, &rows(self.models), &rows(self.frameworks), &rows(self.tools));
        });
    }
}

#[component]
pub(super) fn Workload(form: Form, card: Card, choices: Choices, servers: Rows) -> impl IntoView {
    let draft = card.draft;
    check_while_typing(card, servers);
    let place = move || form.cards.with(|cards| cards.iter().position(|c| c.id == card.id).unwrap_or(0) + 1);
    let several = move || form.cards.with(|cards| cards.len() > 1);
    let id = format!("workload-{}", card.id);
    let code = move || {
        draft.with(|d| {
            let model = d.model.rsplit('/').next().unwrap_or_default();
            code_from_name(&[model, &d.framework, &d.quantization].join(" "))
        })
    };
    let judge = move |_| {
        let mut judged = draft.get_untracked();
        judged.change_tool(ToolCode::Kyai);
        form.add(judged);
    };
    view! {
        <section
            class="workload"
            aria-labelledby=id.clone()
            data-testid="workload-card"
            data-active=move || form.shown().is_some_and(|shown| shown.id == card.id).to_string()
            on:focusin=move |_| form.active.set(card.id)
        >
            <div class="section-head section-head-plain">
                <h2 id=id.clone()>{move || if several() { format!("Workload {}", place()) } else { "Workload".to_owned() }}</h2>
                <span class="key quiet">{code}</span>
                {form.existing.is_none().then(|| view! {
                    <div class="actions push">
                        <Show when=move || draft.with(|d| d.tool().can_be_judged())>
                            <button type="button" class="figure-toggle" data-testid="judge-card" title="the same model and server, judged by its answers" on:click=judge>"Add KYAI"</button>
                        </Show>
                        <button type="button" class="figure-toggle" data-testid="duplicate-card" on:click=move |_| form.add(draft.get_untracked())>"Duplicate"</button>
                        <Show when=several>
                            <button type="button" class="figure-toggle" data-testid="remove-card" on:click=move |_| form.remove(card.id)>"Remove"</button>
                        </Show>
                    </div>
                })}
            </div>
            <Kinds card choices servers/>
            <div class="form-grid">
                <Served card choices servers/>
                <Sent card choices/>
                <ToolFields card tools=choices.tools own=true/>
                <InForce card choices/>
                <details class="span-12" data-testid="more-arguments">
                    <summary>{move || format!("Engine arguments, and more of {}", draft.with(|d| d.tool.clone()))}</summary>
                    <Own card choices/>
                    <label class="check">
                        <input
                            type="checkbox"
                            prop:checked=move || draft.with(|d| d.keep_server)
                            on:change=move |event| draft.update(|d| d.keep_server = event_target_checked(&event))
                        />
                        " keep one model server for all jobs of a run (recorded in the result)"
                    </label>
                    <div class="form-grid">
                        <ToolSets card/>
                        <ToolFields card tools=choices.tools own=false/>
                    </div>
                </details>
            </div>
            <Matrix card/>
        </section>
    }
    .into_any()
}

/// What is served, by what, where.
#[component]
fn Served(card: Card, choices: Choices, servers: Rows) -> impl IntoView {
    let draft = card.draft;
    let Choices { models, frameworks, tools, sets, .. } = choices;
    let same = |list: Vec<String>| list.into_iter().map(|c| (c.clone(), c)).collect::<Vec<_>>();
    let model_codes = Memo::new(move |_| {
        let tool = draft.with(|d| d.tool.clone());
        let fitting = |m: &[Row], t: &[Row]| codes(models_of(&tool, m, t), "model_code");
        tools.rows.with(|t| {
            models.rows.with(|m| fitting(m.as_deref().unwrap_or_default(), t.as_deref().unwrap_or_default()))
        })
    });
    let framework_codes = Memo::new(move |_| {
        let tool = draft.with(|d| d.tool.clone());
        let fitting = |f: &[Row], t: &[Row]| codes(frameworks_of(&tool, f, t), "framework_code");
        tools.rows.with(|t| {
            frameworks
                .rows
                .with(|f| fitting(f.as_deref().unwrap_or_default(), t.as_deref().unwrap_or_default()))
        })
    });
    let version_codes = Memo::new(move |_| {
        let framework = draft.with(|d| d.framework.clone());
        frameworks.rows.with(|f| versions(f.as_deref().unwrap_or_default(), &framework))
    });
    let formats = Memo::new(move |_| {
        draft.with(|d| {
            models.rows.with(|m| {
                frameworks.rows.with(|f| {
                    quantizations(d, m.as_deref().unwrap_or_default(), f.as_deref().unwrap_or_default())
                })
            })
        })
    });
    let builds = Memo::new(move |_| {
        draft.with(|d| frameworks.rows.with(|f| build_options(f.as_deref().unwrap_or_default(), d)))
    });
    let set_words = Memo::new(move |_| {
        draft.with(|d| sets.rows.with(|r| set_options(r.as_deref().unwrap_or_default(), d)))
    });
    let machines = Memo::new(move |_| {
        servers.all().iter().map(|s| (s.text("server"), server_words(s))).collect::<Vec<_>>()
    });
    let change_framework = move |code: String| {
        choices.change(card, servers, |d| {
            d.framework = code;
            d.version.clear();
            d.build_profile.clear();
            d.engine_args_set.clear();
        });
    };
    view! {
        {select("model", "Model", "span-5", move || draft.with(|d| d.model.clone()), move || same(model_codes.get()), move |v| draft.update(|d| d.model = v))}
        {select("framework", "Framework", "span-2 half", move || draft.with(|d| d.framework.clone()), move || same(framework_codes.get()), change_framework)}
        {select("framework-version", "Version", "span-2 half", move || draft.with(|d| d.version.clone()), move || same(version_codes.get()), move |v| draft.update(|d| d.version = v))}
        {suggested("quantization", format!("formats-{}", card.id), "Quantization", "as published", move || draft.with(|d| d.quantization.clone()), formats, move |v| draft.update(|d| v.trim().clone_into(&mut d.quantization)))}
        {select("server", "Server", "span-5", move || draft.with(|d| d.server.clone()), move || machines.get(), move |v| draft.update(|d| d.server = v))}
        {select("engine-args-set", "Engine args set", "span-7", move || draft.with(|d| d.engine_args_set.clone()), move || set_words.get(), move |v| draft.update(|d| d.engine_args_set = v))}
        <Show when=move || builds.with(|b| !b.is_empty())>
            {select("build-profile", "Build profile", "span-5 half", move || draft.with(|d| d.build_profile.clone()), move || builds.get(), move |v| draft.update(|d| d.build_profile = v))}
        </Show>
        <Show when=move || draft.with(|d| d.framework == "openai")>
            <label class="field span-12">
                <span class="field-label">"Endpoint that already runs"</span>
                <input
                    class="control key"
                    type="url"
                    placeholder="http://host:8000/v1"
                    data-testid="endpoint"
                    prop:value=move || draft.with(|d| d.endpoint.clone())
                    on:input=move |event| draft.update(|d| d.endpoint = event_target_value(&event))
                />
            </label>
        </Show>
    }
    .into_any()
}

/// What is sent: by which tool, from where, how many.
#[component]
fn Sent(card: Card, choices: Choices) -> impl IntoView {
    let draft = card.draft;
    let Choices { prompts, .. } = choices;
    let tools_of_kind = Memo::new(move |_| {
        let kind = draft.with(|d| d.tool().kind());
        kind.tools().map(|t| (t.as_str().to_owned(), t.as_str().to_owned())).collect::<Vec<_>>()
    });
    let sources = Memo::new(move |_| {
        let tool = draft.with(|d| d.tool());
        prompts.rows.with(|r| source_options(r.as_deref().unwrap_or_default(), tool))
    });
    let reads = Memo::new(move |_| draft.with(|d| d.tool().prompt_source_type().is_some()));
    let streams = Memo::new(move |_| draft.with(|d| d.tool().axes().streaming));
    let usual = move || match draft.with(Draft::default_requests) {
        Some((few, many)) if few == many => count(i64::from(few)),
        Some((few, many)) => {
            format!("{} to {}, by concurrency", count(i64::from(few)), count(i64::from(many)))
        }
        None => String::new(),
    };
    // Radio buttons of one workload are a group of their own.
    let streaming = StoredValue::new(format!("streaming-{}", card.id));
    view! {
        {select("tool", "Tool", "span-3 half", move || draft.with(|d| d.tool.clone()), move || tools_of_kind.get(), move |v| draft.update(|d| {
            if let Some(tool) = ToolCode::of(&v) {
                d.change_tool(tool);
            }
        }))}
        <Show when=move || reads.get()>
            {select("prompt-source", "Inputs", "span-4 half", move || draft.with(|d| d.prompt_source.clone()), move || sources.get(), move |v| draft.update(|d| d.prompt_source = v))}
        </Show>
        <label class="field span-3 half">
            <span class="field-label">"Requests per scenario"</span>
            <input
                class="control"
                inputmode="numeric"
                placeholder=usual
                data-testid="num-requests"
                prop:value=move || draft.with(|d| d.requests.clone())
                on:input=move |event| draft.update(|d| d.requests = event_target_value(&event))
            />
        </label>
        <Show when=move || streams.get()>
            <fieldset class="field span-2 half">
                <legend class="field-label">"Streaming"</legend>
                <span class="segmented">
                    <label><input type="radio" name=streaming.get_value() prop:checked=move || draft.with(|d| d.streaming) on:change=move |_| draft.update(|d| d.streaming = true)/>"On"</label>
                    <label><input type="radio" name=streaming.get_value() data-testid="streaming-off" prop:checked=move || draft.with(|d| !d.streaming) on:change=move |_| draft.update(|d| d.streaming = false)/>"Off"</label>
                </span>
            </fieldset>
        </Show>
    }
    .into_any()
}

/// The axes of the scenarios that the tool has.
#[component]
fn Matrix(card: Card) -> impl IntoView {
    let draft = card.draft;
    let axes = Memo::new(move |_| draft.with(|d| d.tool().axes()));
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<String>>();
    view! {
        <div class="matrix">
            <Chips label="Concurrency" name="concurrency" usual=CONCURRENCY.to_vec() set=Signal::derive(move || draft.with(|d| d.concurrency.clone())) toggle=move |v: &u32| draft.update(|d| flip(&mut d.concurrency, v)) another=number none="only a whole number above 0"/>
            <Show when=move || axes.get().lengths>
                <Chips label="Input tokens, ISL" name="isl" usual=ISL.to_vec() set=Signal::derive(move || draft.with(|d| d.isl.clone())) toggle=move |v: &u32| draft.update(|d| flip(&mut d.isl, v)) another=number none="only a whole number above 0"/>
                <Chips label="Output tokens, OSL" name="osl" usual=OSL.to_vec() set=Signal::derive(move || draft.with(|d| d.osl.clone())) toggle=move |v: &u32| draft.update(|d| flip(&mut d.osl, v)) another=number none="only a whole number above 0"/>
            </Show>
            <Show when=move || axes.get().num_rounds>
                <Chips label="Rounds" name="rounds" usual=ROUNDS.to_vec() set=Signal::derive(move || draft.with(|d| d.rounds.clone())) toggle=move |v: &u32| draft.update(|d| flip(&mut d.rounds, v)) another=rounds none="conversations of at least 5 rounds are replayed"/>
            </Show>
            <Show when=move || axes.get().num_images_batch>
                <Chips label="Images per request" name="images" usual=IMAGES.to_vec() set=Signal::derive(move || draft.with(|d| d.images.clone())) toggle=move |v: &u32| draft.update(|d| flip(&mut d.images, v)) another=number none="only a whole number above 0"/>
            </Show>
            <Show when=move || axes.get().image_size>
                <Chips label="Image size" name="image-sizes" usual=words(&IMAGE_SIZES) set=Signal::derive(move || draft.with(|d| d.image_sizes.clone())) toggle=move |v: &String| draft.update(|d| flip(&mut d.image_sizes, v)) another=size none="an image size is WIDTHxHEIGHT in pixels, such as 1024x768"/>
            </Show>
            <Show when=move || axes.get().image_detail>
                <Chips label="Image detail" name="image-details" usual=words(IMAGE_DETAILS) set=Signal::derive(move || draft.with(|d| d.image_details.clone())) toggle=move |v: &String| draft.update(|d| flip(&mut d.image_details, v)) />
            </Show>
        </div>
    }
    .into_any()
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| *n > 0)
}

/// Shorter conversations than that are not replayed.
fn rounds(text: &str) -> Option<u32> {
    number(text).filter(|n| *n >= FEWEST_ROUNDS)
}

fn size(text: &str) -> Option<String> {
    image_size(text).map(|_| text.to_owned())
}

fn server_words(server: &Row) -> String {
    let gpus = match (server.whole("gpu_count"), server.maybe_text("gpu_name")) {
        (Some(n), Some(name)) if n > 0 => format!("{n} × {name}"),
        _ => format!("CPU, {} cores", maybe_count(server.whole("cpus"))),
    };
    format!("{}/{} · {gpus} · {}", server.text("config_code"), server.text("hostname"), server.text("state"))
}

/// The kind of workload: it decides the tool, and with it what else there is to choose.
#[component]
fn Kinds(card: Card, choices: Choices, servers: Rows) -> impl IntoView {
    let now = Memo::new(move |_| card.draft.with(|d| d.tool().kind()));
    let choose = move |tool: ToolCode| {
        choices.change(card, servers, |d| {
            d.change_tool(tool);
            d.engine_args_set.clear();
        });
    };
    let kinds = WorkloadKind::ALL.iter().filter_map(|kind| {
        let tool = kind.tools().next()?;
        Some(view! {
            <label data-testid="kind" data-tool=tool.as_str()>
                <input type="radio" name=format!("kind-{}", card.id) prop:checked=move || now.get() == *kind on:change=move |_| choose(tool)/>
                <b>{kind.name()}</b>
                <span class="key quiet">{tool.as_str()}</span>
            </label>
        })
    });
    view! { <div class="kinds" role="radiogroup" aria-label="Kind of workload">{kinds.collect_view()}</div> }
        .into_any()
}
