//! Results that another tool measured elsewhere, brought into a project as a file. They are marked imported: nobody here
//! saw them being made. The file is read here first, by the control plane's own reader, so that what it holds, or each
//! fault with its line, is seen before anything is sent.

mod shown;

use events::access::Role;
use events::api::ImportResults;
use events::foreign::Format;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows};
use crate::browser::route::use_location;
use crate::parts::PageHead;
use crate::parts::states::Forbidden;
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::importing::Chosen;
use crate::state::query::Query;

use self::shown::{faults, file_words, imported, preview, refused};

/// Bytes of a file that are sent with the command; a larger one is uploaded first.
const INLINE_BYTES: usize = 900_000;

fn word(text: RwSignal<String>) -> Option<String> {
    let text = text.get_untracked();
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// A number that may be left out.
///
/// # Errors
/// What was typed, where it is none.
fn number<T: std::str::FromStr>(label: &str, text: RwSignal<String>) -> Result<Option<T>, Trouble> {
    match word(text) {
        None => Ok(None),
        Some(typed) => typed.parse().map(Some).map_err(|_| {
            Trouble::of_page(
                "bad_value",
                &format!("{label} is a number, not “{typed}”."),
                "Correct it, or leave it empty.",
            )
        }),
    }
}

/// What is said beside the file; copied freely.
#[derive(Clone, Copy)]
struct Said {
    project: RwSignal<String>,
    model: RwSignal<String>,
    framework: RwSignal<String>,
    version: RwSignal<String>,
    quantization: RwSignal<String>,
    gpu: RwSignal<String>,
    gpus: RwSignal<String>,
    price: RwSignal<String>,
    concurrency: RwSignal<String>,
    isl: RwSignal<String>,
    osl: RwSignal<String>,
}

impl Said {
    fn new(project: String) -> Self {
        let empty = || RwSignal::new(String::new());
        Self {
            project: RwSignal::new(project),
            model: empty(),
            framework: empty(),
            version: empty(),
            quantization: empty(),
            gpu: empty(),
            gpus: empty(),
            price: empty(),
            concurrency: empty(),
            isl: empty(),
            osl: empty(),
        }
    }

    /// The command, without the file.
    fn command(self, format: Format) -> Result<ImportResults, Trouble> {
        Ok(ImportResults {
            p_project_code: self.project.get_untracked(),
            p_format: format,
            p_content: None,
            p_upload_sha256: None,
            p_import_code: None,
            p_model_code: self.model.get_untracked(),
            p_framework_code: word(self.framework),
            p_framework_version: word(self.version),
            p_quantization: word(self.quantization),
            p_gpu_name: word(self.gpu),
            p_gpu_count: number("GPUs", self.gpus)?,
            p_cost_per_hour_usd: number("The price", self.price)?,
            p_concurrency: number("The concurrency", self.concurrency)?,
            p_input_sequence_length: number("Input tokens", self.isl)?,
            p_output_sequence_length: number("Output tokens", self.osl)?,
        })
    }
}

/// Sends the file, with the command or before it.
async fn send(
    mut command: ImportResults,
    chosen: &Chosen,
    file: &web_sys::File,
) -> Result<(i64, Vec<String>), Trouble> {
    if chosen.size > INLINE_BYTES {
        api::upload(file, &chosen.sha256).await?;
        command.p_upload_sha256 = Some(chosen.sha256.clone());
    } else {
        let text = JsFuture::from(file.text()).await.ok().and_then(|t| t.as_string());
        command.p_content = Some(text.unwrap_or_default());
    }
    let reply = api::command("import_results", &command).await?;
    let results = reply.keys.get("results").and_then(Value::as_array);
    let streams = results.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok((reply.position, streams))
}

/// The page: `?project=code` names the project.
#[component]
pub fn Import() -> impl IntoView {
    let page = Page::expect();
    if !page.may(Role::Member) {
        return view! { <PageHead title="Import results"/><Forbidden what="import results" role=Role::Member/> }.into_any();
    }
    let query = use_location().search.with_untracked(|search| Query::parse(search));
    let said = Said::new(query.get("project").unwrap_or_default().to_owned());
    let org = page.org_now();
    let of_org = format!(
        "/api/v_projects?org=eq.{}&archived=is.false&order=project_code.asc&limit=1000&select=project_code,name",
        percent(&org)
    );
    let projects = use_rows(move || Some(of_org.clone()));
    let models = use_rows(|| Some("/api/v_models?order=model_code.asc&limit=1000&select=model_code".into()));
    let frameworks = use_rows(|| {
        Some("/api/v_frameworks?order=framework_code.asc&limit=500&select=framework_code".into())
    });
    let input = NodeRef::<leptos::html::Input>::new();
    // Empty: the format is recognised.
    let format = RwSignal::new(String::new());
    let chosen = RwSignal::new(None::<Chosen>);
    let (busy, trouble) = (RwSignal::new(false), RwSignal::new(None::<Trouble>));
    let done = RwSignal::new(None::<Vec<String>>);
    let file = move || input.get_untracked().and_then(|input| input.files()).and_then(|files| files.get(0));
    let read = move || {
        trouble.set(None);
        done.set(None);
        let Some(file) = file() else {
            chosen.set(None);
            return;
        };
        let wanted = format.with_untracked(|f| Format::ALL.iter().copied().find(|known| known.as_str() == f));
        spawn_local(async move {
            let Ok(buffer) = JsFuture::from(file.array_buffer()).await else { return };
            let bytes = js_sys::Uint8Array::new(&buffer).to_vec();
            chosen.try_set(Some(Chosen::read(&file.name(), &bytes, wanted)));
        });
    };
    let may_send = Memo::new(move |_| {
        let filled = said.project.with(|p| !p.is_empty()) && said.model.with(|m| !m.is_empty());
        filled && !busy.get() && chosen.with(|c| c.as_ref().is_some_and(Chosen::is_good))
    });
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let (Some(file), Some(now), true) = (file(), chosen.get_untracked(), may_send.get_untracked()) else {
            return;
        };
        trouble.set(None);
        let command = match said.command(now.format) {
            Ok(command) => command,
            Err(error) => {
                trouble.set(Some(error));
                return;
            }
        };
        busy.set(true);
        spawn_local(async move {
            let answer = send(command, &now, &file).await;
            busy.try_set(false);
            match answer {
                Ok((position, streams)) => {
                    page.live.must_reach(position);
                    done.try_set(Some(streams));
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let why_not = move || {
        let missing = [
            (chosen.with(Option::is_none), "choose a file"),
            (chosen.with(|c| c.as_ref().is_some_and(|c| !c.is_good())), "the file has faults"),
            (said.project.with(String::is_empty), "choose a project"),
            (said.model.with(String::is_empty), "choose the model"),
        ];
        missing.iter().find(|(is, _)| *is).map(|(_, words)| *words)
    };
    view! {
        <PageHead title="Import results" meta=|| "what another tool measured elsewhere, marked imported wherever it appears".into_any()/>
        <form class="grid" on:submit=submit data-testid="import-form" aria-label="Import results">
            <div class="span-4">
                <div class="form-grid form-narrow">
                    {choice("import-project", "Project", said.project, projects, "project_code")}
                    <label class="field span-12"><span class="field-label">"File"</span><input class="control control-file" type="file" required data-testid="import-file" node_ref=input on:change=move |_| read()/></label>
                    <label class="field span-12"><span class="field-label">"Format"</span>
                        <select class="control" data-testid="import-format" on:change=move |e| { format.set(event_target_value(&e)); read(); }>
                            <option value="">"as recognised"</option>
                            {Format::ALL.iter().map(|f| view! { <option value=f.as_str()>{f.title()}</option> }).collect_view()}
                        </select>
                    </label>
                    {choice("import-model", "Model", said.model, models, "model_code")}
                </div>
                <h2 class="below">"What the file does not say"</h2>
                <div class="form-grid form-narrow">
                    {typed("import-framework", "Framework", said.framework, "not said", Some(frameworks))}
                    {typed("import-version", "Version", said.version, "not said", None)}
                    {typed("import-quantization", "Quantization", said.quantization, "as published", None)}
                    {typed("import-gpu", "GPU", said.gpu, "not said", None)}
                    {typed("import-gpus", "GPUs", said.gpus, "not said", None)}
                    {typed("import-price", "US$ an hour", said.price, "not said", None)}
                    {typed("import-concurrency", "Concurrency", said.concurrency, "as the file says", None)}
                    {typed("import-isl", "Input tokens", said.isl, "as the file says", None)}
                    {typed("import-osl", "Output tokens", said.osl, "as the file says", None)}
                </div>
            </div>
            <div class="span-8 stack">
                <section aria-labelledby="file" aria-live="polite">
                    <div class="section-head"><h2 id="file">"The file"</h2><span class="meta">{move || chosen.with(|c| c.as_ref().map(file_words))}</span></div>
                    {move || match chosen.get() {
                        None => view! { <p class="meta one-line" data-testid="import-none">"Choose the file as the tool wrote it. It is read here first: what it holds is shown before anything is sent."</p> }.into_any(),
                        Some(chosen) if chosen.is_good() => preview(&chosen.results),
                        Some(chosen) => faults(&chosen),
                    }}
                </section>
                <div class="actions">
                    <button type="submit" class="button button-primary" data-testid="import-submit" aria-disabled=move || (!may_send.get()).to_string()>{move || if busy.get() { "Importing" } else { "Import" }}</button>
                    <span class="meta">{why_not}</span>
                </div>
                <div role="alert" data-testid="import-trouble">{move || trouble.get().map(|t| refused(&t))}</div>
                <div role="status">{move || done.get().map(|streams| imported(&streams, &said.project.get_untracked()))}</div>
            </div>
        </form>
    }
    .into_any()
}

fn choice(
    testid: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    rows: Rows,
    column: &'static str,
) -> AnyView {
    let options = move || {
        let now = value.get();
        let option = |row: &Row| {
            let code = row.text(column);
            view! { <option value=code.clone() prop:selected=code == now>{code.clone()}</option> }
        };
        rows.all().iter().map(option).collect_view()
    };
    view! {
        <label class="field span-12">
            <span class="field-label">{label}</span>
            <select class="control" required data-testid=testid on:change=move |e| value.set(event_target_value(&e))>
                <option value="" prop:selected=move || value.with(String::is_empty)>"choose"</option>
                {options}
            </select>
        </label>
    }
    .into_any()
}

fn typed(
    testid: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    placeholder: &'static str,
    known: Option<Rows>,
) -> AnyView {
    let list = known.map(|rows| {
        let words = move || {
            let mut codes: Vec<String> = rows.all().iter().map(|r| r.text("framework_code")).collect();
            codes.dedup();
            codes.into_iter().map(|code| view! { <option value=code></option> }).collect_view()
        };
        view! { <datalist id=format!("{testid}-known")>{words}</datalist> }
    });
    let id = known.is_some().then(|| format!("{testid}-known"));
    view! {
        <label class="field span-4 half">
            <span class="field-label">{label}</span>
            <input class="control" list=id placeholder=placeholder data-testid=testid bind:value=value/>
            {list}
        </label>
    }
    .into_any()
}
