//! What can be changed about a project: its name, who sees it, that it takes no more work.

use events::api::{ArchiveProject, RenameProject, SetProjectVisibility};
use events::project::ProjectVisibility;
use leptos::prelude::*;

use super::projects::visible_to;
use crate::browser::remote::Rows;
use crate::parts::{CommandButton, Done};

/// Who may see a project, the fewest first.
const VISIBILITIES: [ProjectVisibility; 3] =
    [ProjectVisibility::Private, ProjectVisibility::Organization, ProjectVisibility::Public];

/// The settings, folded away until somebody wants them.
#[component]
pub fn ProjectSettings(
    /// The project's row.
    projects: Rows,
    /// Its code.
    project: String,
) -> impl IntoView {
    let name = RwSignal::new(String::new());
    let visibility = RwSignal::new("organization".to_owned());
    // What is typed stays; what is read comes before anybody types.
    Effect::new(move |before: Option<bool>| {
        let row = projects.first();
        if let (Some(row), false) = (&row, before.unwrap_or(false)) {
            name.set(row.text("name"));
            visibility.set(row.text("visibility"));
        }
        before.unwrap_or(false) || row.is_some()
    });
    let archived = Memo::new(move |_| projects.first().is_some_and(|p| p.is("archived")));
    let code = StoredValue::new(project);
    let again = Done::new(move |_| projects.reload());
    let rename = Callback::new(move |()| RenameProject {
        p_project_code: code.get_value(),
        p_name: name.get_untracked().trim().to_owned(),
    });
    let show_to = Callback::new(move |()| {
        let chosen = visibility.get_untracked();
        let found = VISIBILITIES.into_iter().find(|v| v.as_str() == chosen);
        SetProjectVisibility { p_project_code: code.get_value(), p_visibility: found.unwrap_or_default() }
    });
    let archive = Callback::new(move |()| ArchiveProject { p_project_code: code.get_value() });
    let choices = VISIBILITIES.map(|value| {
        let word = value.as_str();
        view! {
            <label>
                <input type="radio" name="visibility" prop:checked=move || visibility.with(|v| v == word) on:change=move |_| visibility.set(word.to_owned())/>
                {visible_to(word)}
            </label>
        }
    });
    view! {
        <section class="below" aria-labelledby="settings">
            <div class="section-head"><h2 id="settings">"Settings"</h2><span class="meta">"every change is an event; the code stays"</span></div>
            <div class="form-grid" data-testid="project-settings">
                <label class="field span-4">
                    <span class="field-label">"Name"</span>
                    <input class="control" data-testid="settings-name" bind:value=name/>
                </label>
                <div class="field span-2">
                    <span class="field-label">"\u{a0}"</span>
                    <CommandButton word="Rename" command="rename_project" arguments=rename done=again.clone() testid="rename-project"/>
                </div>
                <fieldset class="field span-3">
                    <legend class="field-label">"Visible to"</legend>
                    <span class="segmented">{choices.collect_view()}</span>
                </fieldset>
                <div class="field span-3">
                    <span class="field-label">"\u{a0}"</span>
                    <CommandButton word="Change" command="set_project_visibility" arguments=show_to done=again.clone() testid="set-visibility"/>
                </div>
                <div class="field span-12">
                    <Show
                        when=move || archived.get()
                        fallback=move || view! {
                            <CommandButton word="Archive" sure="No more work will run here; its results stay." command="archive_project" arguments=archive done=again.clone() testid="archive-project"/>
                        }
                    >
                        <p data-testid="archived"><span class="status" data-status="queued">"archived"</span>" "<span class="quiet">"it takes no more work; its results stay"</span></p>
                    </Show>
                </div>
            </div>
        </section>
    }
    .into_any()
}
