//! New project: one page from a question to running jobs; readiness and commands while one types.

mod choices;
mod controls;
mod cures;
mod draft;
mod engine;
mod fields;
mod keep_as;
mod kept;
mod readiness;
mod save;
mod tool_sets;
mod workload;

use crate::browser::route::use_location;
use events::access::Role;
use events::api::Readiness;
use events::keys::code_from_name;
use events::project::ProjectVisibility;
use events::tools::ToolCode;
use leptos::prelude::*;

use self::draft::Draft;
use crate::browser::api::Trouble;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::parts::PageHead;
use crate::parts::states::Forbidden;
use crate::state::filters::percent;
use crate::state::live;
use crate::state::query::Query;

/// What the form holds; copied freely.
#[derive(Clone, Copy)]
struct Form {
    name: RwSignal<String>,
    visibility: RwSignal<ProjectVisibility>,
    /// The workloads, in their order.
    cards: RwSignal<Vec<Card>>,
    /// The workload whose readiness, commands and scenarios are shown.
    active: RwSignal<u32>,
    busy: RwSignal<bool>,
    /// The project a workload is added to; nothing for a new one.
    existing: Option<StoredValue<String>>,
    /// The form's own: what a card is made of lives as long as the form, not as the button that made it.
    owner: StoredValue<Owner>,
}

/// One workload of the form; copied freely.
#[derive(Clone, Copy, PartialEq)]
struct Card {
    id: u32,
    draft: RwSignal<Draft>,
    readiness: RwSignal<Option<Readiness>>,
    /// Something changed since the readiness shown was asked for.
    checking: RwSignal<bool>,
    trouble: RwSignal<Option<Trouble>>,
    /// Rises when readiness must be asked for anew although nothing was typed.
    again: RwSignal<u32>,
}

impl Card {
    fn new(id: u32, draft: Draft) -> Self {
        Self {
            id,
            draft: RwSignal::new(draft),
            readiness: RwSignal::new(None),
            checking: RwSignal::new(false),
            trouble: RwSignal::new(None),
            again: RwSignal::new(0),
        }
    }
}

impl Form {
    fn code(self) -> String {
        match self.existing {
            Some(code) => code.get_value(),
            None => self.name.try_with(|name| code_from_name(name)).unwrap_or_default(),
        }
    }

    /// The workload that is looked at; the first where that is gone.
    fn shown(self) -> Option<Card> {
        let active = self.active.get();
        self.cards.with(|cards| cards.iter().find(|c| c.id == active).or(cards.first()).copied())
    }

    /// A workload of the form's. A handler runs on behalf of its button, and what it makes would go with that.
    fn card(self, id: u32, draft: Draft) -> Card {
        self.owner.with_value(|owner| owner.with(|| Card::new(id, draft)))
    }

    /// Adds a workload after the others and looks at it.
    fn add(self, draft: Draft) {
        let id = self.cards.with_untracked(|cards| cards.iter().map(|c| c.id).max().unwrap_or(0) + 1);
        let card = self.card(id, draft);
        self.cards.update(|cards| cards.push(card));
        self.active.set(id);
    }

    fn remove(self, id: u32) {
        self.cards.update(|cards| cards.retain(|c| c.id != id));
    }
}

/// The page that makes a project, or adds a workload to one (`?project=code`), as a clone of one there is
/// (`?workload=code`), where another tool is asked for (`?tool=code`) driven by that.
#[component]
pub fn NewProject() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let query = Query::parse(&location.search.get_untracked());
    let existing = query.get("project").map(str::to_owned);
    let cloned = existing.clone().zip(query.get("workload").map(str::to_owned));
    let tool = query.get("tool").and_then(ToolCode::of);
    let title = if existing.is_none() { "New project" } else { "New workload" };
    if !page.may(Role::Member) {
        return view! { <PageHead title/><Forbidden what="make projects and run benchmarks" role=Role::Member/> }
            .into_any();
    }
    let form = Form {
        name: RwSignal::new(existing.clone().unwrap_or_default()),
        visibility: RwSignal::new(ProjectVisibility::Organization),
        cards: RwSignal::new(vec![Card::new(1, Draft::default())]),
        active: RwSignal::new(1),
        busy: RwSignal::new(false),
        existing: existing.map(StoredValue::new),
        owner: StoredValue::new(Owner::current().unwrap_or_default()),
    };
    let models = use_rows(|| Some("/api/v_models?order=model_code.asc&limit=500".into()));
    let frameworks = use_rows(|| Some("/api/v_frameworks?order=framework_code.asc&limit=500".into()));
    let tools = use_rows(|| Some("/api/v_tools?order=tool_code.asc".into()));
    let servers = use_rows(|| Some("/api/v_servers?removed=is.false&order=server.asc".into()));
    let choices = workload::Choices {
        models,
        frameworks,
        tools,
        sets: use_rows(|| {
            Some("/api/v_framework_engine_args_sets?archived=is.false&order=set_code.asc&limit=2000&select=set_code,framework_code,model_code,model_family,gpu_count,verified,custom".into())
        }),
        prompts: use_rows(|| Some("/api/v_prompt_sources?order=prompt_source_code.asc&limit=500".into())),
    };
    let projects = use_rows(|| Some("/api/v_projects?select=project_code&limit=1000".into()));
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(servers, vec![format!("{org}:server")], live::fold_server, |e| live::kind(e) == "server");
    }
    let kept = kept::Kept::of(form, &org, cloned.is_some());
    let clone_there = RwSignal::new(cloned.is_none());
    if let Some((project, workload)) = cloned {
        clone_workload(form, &project, &workload, tool, clone_there);
    }
    // The first sensible choice, once it is known what there is.
    Effect::new(move |_| {
        let (Some(models), Some(frameworks), Some(tools), Some(servers), true) = (
            models.rows.get(),
            frameworks.rows.get(),
            tools.rows.get(),
            servers.rows.get(),
            clone_there.get(),
        ) else {
            return;
        };
        for card in form.cards.get() {
            card.draft.update(|draft| {
                let server = draft.settle_on(&servers);
                draft.suit(server, &models, &frameworks, &tools);
            });
        }
        kept.begin();
    });

    let new = form.existing.is_none();
    let keys = Memo::new(move |_| form.cards.with(|cards| cards.iter().map(|c| c.id).collect::<Vec<_>>()));
    let shown = Memo::new(move |_| form.shown());
    let card = move |id: u32| form.cards.with_untracked(|c| c.iter().find(|c| c.id == id).copied());
    view! {
        <form class="grid" aria-label=title data-testid="new-project-form" on:submit=|event| event.prevent_default()>
            <div class="span-8">
                <PageHead title meta=|| "nothing runs until you execute; every change is an event".into_any()/>
                <kept::Restored kept/>
                <ProjectFields form projects/>
                <For each=move || keys.get() key=|id| *id let:id>
                    {card(id).map(|card| view! { <workload::Workload form card choices servers/> })}
                </For>
                {new.then(|| view! {
                    <div class="actions below">
                        <button type="button" class="button" data-testid="add-card" on:click=move |_| {
                            let last = form.cards.with_untracked(|c| c.last().map(|c| c.draft.get_untracked()));
                            form.add(last.unwrap_or_default());
                        }>"Add workload"</button>
                    </div>
                })}
                {move || shown.get().map(|card| view! { <readiness::Commands card/> })}
            </div>
            <div class="span-4 sticky-side stack">
                {move || shown.get().map(|card| view! {
                    <readiness::ReadinessPanel form card choices servers/>
                    <readiness::Scenarios card servers/>
                })}
                <save::Actions form servers kept/>
            </div>
        </form>
    }
    .into_any()
}

/// Fills the form with a workload there is; `there` says when.
fn clone_workload(form: Form, project: &str, workload: &str, tool: Option<ToolCode>, there: RwSignal<bool>) {
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
        let card = form.cards.with_untracked(|cards| cards.first().copied());
        if let (Some(workload), Some(card)) = (workload.first(), card) {
            let mut draft = Draft::of(workload, &scenarios);
            if let Some(tool) = tool {
                draft.change_tool(tool);
            }
            card.draft.set(draft);
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
