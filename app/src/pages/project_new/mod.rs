//! New project: one page from a question to running jobs; readiness and commands while one types.

mod draft;
mod readiness;
mod save;
mod workload;

use events::api::Readiness;
use events::keys::code_from_name;
use events::project::ProjectVisibility;
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use self::draft::Draft;
use crate::browser::api::Trouble;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::parts::PageHead;
use crate::parts::states::Forbidden;
use crate::state::live;
use crate::state::query::Query;
use crate::state::report::percent;

/// What the form holds; copied freely.
#[derive(Clone, Copy)]
struct Form {
    name: RwSignal<String>,
    visibility: RwSignal<ProjectVisibility>,
    draft: RwSignal<Draft>,
    server: RwSignal<String>,
    readiness: RwSignal<Option<Readiness>>,
    /// Something changed since the readiness shown was asked for.
    checking: RwSignal<bool>,
    trouble: RwSignal<Option<Trouble>>,
    busy: RwSignal<bool>,
    /// The project a workload is added to; nothing for a new one.
    existing: Option<StoredValue<String>>,
}

impl Form {
    fn code(self) -> String {
        match self.existing {
            Some(code) => code.get_value(),
            None => self.name.try_with(|name| code_from_name(name)).unwrap_or_default(),
        }
    }
}

/// The page that makes a project, or adds a workload to one (`?project=code`), as a clone of one there is
/// (`?workload=code`).
#[component]
pub fn NewProject() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let query = Query::parse(&location.search.get_untracked());
    let existing = query.get("project").map(str::to_owned);
    let cloned = existing.clone().zip(query.get("workload").map(str::to_owned));
    let form = Form {
        name: RwSignal::new(existing.clone().unwrap_or_default()),
        visibility: RwSignal::new(ProjectVisibility::Organization),
        draft: RwSignal::new(Draft::default()),
        server: RwSignal::new(String::new()),
        readiness: RwSignal::new(None),
        checking: RwSignal::new(false),
        trouble: RwSignal::new(None),
        busy: RwSignal::new(false),
        existing: existing.map(StoredValue::new),
    };
    let models = use_rows(|| Some("/api/v_models?order=model_code.asc&limit=500".into()));
    let frameworks = use_rows(|| Some("/api/v_frameworks?order=framework_code.asc&limit=500".into()));
    let tools = use_rows(|| Some("/api/v_tools?order=tool_code.asc".into()));
    let servers = use_rows(|| Some("/api/v_servers?removed=is.false&order=server.asc".into()));
    let projects = use_rows(|| Some("/api/v_projects?select=project_code&limit=1000".into()));
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(servers, vec![format!("{org}:server")], live::fold_server, |e| live::kind(e) == "server");
    }
    let clone_there = RwSignal::new(cloned.is_none());
    if let Some((project, workload)) = cloned {
        clone_workload(form, &project, &workload, clone_there);
    }
    // The first sensible choice, once it is known what there is.
    Effect::new(move |_| {
        let (Some(models), Some(frameworks), Some(servers), true) =
            (models.rows.get(), frameworks.rows.get(), servers.rows.get(), clone_there.get())
        else {
            return;
        };
        if form.server.get_untracked().is_empty()
            && let Some(server) = servers.iter().find(|s| s.text("state") == "online").or(servers.first())
        {
            form.server.set(server.text("server"));
        }
        let chosen = form.server.get_untracked();
        let server = servers.iter().find(|s| s.text("server") == chosen);
        form.draft.update(|draft| draft.suit(server, &models, &frameworks));
    });
    readiness::check_while_typing(form, servers);

    if !untrack(|| page.signed_in()) {
        return view! { <PageHead title="New project"/><Forbidden what="make projects and run benchmarks"/> }
            .into_any();
    }
    let title = if form.existing.is_some() { "New workload" } else { "New project" };
    view! {
        <form class="grid" aria-label=title data-testid="new-project-form" on:submit=|event| event.prevent_default()>
            <div class="span-8">
                <PageHead title meta=|| "nothing runs until you execute; every change is an event".into_any()/>
                <ProjectFields form projects/>
                <workload::Workload form models frameworks tools servers/>
                <readiness::Commands form/>
            </div>
            <div class="span-4 sticky-side stack">
                <readiness::ReadinessPanel form/>
                <readiness::Scenarios form servers/>
                <save::Actions form servers/>
            </div>
        </form>
    }
    .into_any()
}

/// Fills the form with a workload there is; `there` says when.
fn clone_workload(form: Form, project: &str, workload: &str, there: RwSignal<bool>) {
    let of = format!("project_code=eq.{}&workload_code=eq.{}", percent(project), percent(workload));
    let asked = of.clone();
    let workloads = use_rows(move || Some(format!("/api/v_workloads?{asked}&limit=1")));
    let scenarios = use_rows(move || Some(format!("/api/v_scenarios?{of}&order=position.asc&limit=1000")));
    Effect::new(move |_| {
        if there.get_untracked() {
            return;
        }
        let (Some(workload), Some(scenarios)) = (workloads.rows.get(), scenarios.rows.get()) else {
            // Without it the form begins as it always does.
            if workloads.trouble.with(Option::is_some) || scenarios.trouble.with(Option::is_some) {
                there.set(true);
            }
            return;
        };
        if let Some(workload) = workload.first() {
            form.draft.set(Draft::of(workload, &scenarios));
        }
        there.set(true);
    });
}

#[component]
fn ProjectFields(form: Form, projects: Rows) -> impl IntoView {
    let page = Page::expect();
    let words = move || {
        let code = form.code();
        let taken = projects.rows.with(|r| r.iter().flatten().any(|p| p.text("project_code") == code));
        match (form.existing.is_some(), code.is_empty(), taken) {
            (true, ..) => String::new(),
            (_, true, _) => "a short question, for example: gemma on this laptop".to_owned(),
            (_, _, true) => format!("{}/{code} exists: choose another name", page.org()),
            _ => format!("{}/{code} is free", page.org()),
        }
    };
    let choice = move |value: ProjectVisibility, word: &'static str| {
        view! {
            <label>
                <input
                    type="radio"
                    name="visibility"
                    prop:checked=move || form.visibility.get() == value
                    on:change=move |_| form.visibility.set(value)
                />
                {word}
            </label>
        }
    };
    view! {
        <div class="form-grid form-first">
            <label class="field span-7">
                <span class="field-label">"Project"</span>
                <input
                    class="control"
                    data-testid="project-name"
                    placeholder="What do you want to know?"
                    readonly=form.existing.is_some()
                    bind:value=form.name
                />
                <small data-testid="project-code">{words}</small>
            </label>
            {form.existing.is_none().then(|| view! {
                <fieldset class="field span-5">
                    <legend class="field-label">"Visible to"</legend>
                    <span class="segmented">
                        {choice(ProjectVisibility::Private, "Me")}
                        {choice(ProjectVisibility::Organization, "Organization")}
                        {choice(ProjectVisibility::Public, "Everyone")}
                    </span>
                </fieldset>
            })}
        </div>
    }
    .into_any()
}
