//! The rows of a table's body as the browser holds them: written as text, kept where nothing changed, and marked in place.

use std::collections::BTreeMap;
use std::rc::Rc;

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::focus_quietly;
use crate::parts::row_html::{Look, proof_of};
use crate::row::Row;
use crate::state::result_key::path_of;

/// A row to be shown.
#[derive(Clone)]
pub struct Wanted {
    /// Its place in a table of which not all rows are drawn, from 0.
    pub nth: Option<usize>,
    /// The row; nothing while it was not read yet.
    pub row: Option<Rc<Row>>,
}

/// How a row is marked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// Picked to be compared.
    pub picked: bool,
    /// Pinned: the others are compared with it.
    pub pinned: bool,
    /// The figure that the drawer explains.
    pub explained: Option<String>,
}

/// A row that is shown.
struct Shown {
    element: web_sys::Element,
    job: String,
    row: Option<Rc<Row>>,
    nth: Option<usize>,
    swatch: &'static str,
    marks: Marks,
    /// Whether its cells are there.
    written: bool,
}

#[derive(Default)]
struct Held {
    look: Look,
    shown: Vec<Shown>,
}

/// The rows of one table; copied freely.
#[derive(Clone, Copy)]
pub struct StaticRows {
    /// The body they are in.
    pub body: NodeRef<leptos::html::Tbody>,
    held: StoredValue<Held, LocalStorage>,
}

impl StaticRows {
    /// No rows yet.
    pub fn new() -> Self {
        Self { body: NodeRef::new(), held: StoredValue::new_local(Held::default()) }
    }

    /// Shows these rows in this order. What is shown already stays as it is; where the keyboard was, it is afterwards.
    pub fn show(self, look: &Look, wanted: &[Wanted], here: &str, swatch: impl Fn(&Row) -> &'static str) {
        let Some(body) = self.body.get() else { return };
        let focus = Focus::within(&body);
        self.held.try_update_value(|held| {
            let same_look = held.look == *look;
            if !same_look {
                held.look = look.clone();
            }
            let jobs: Vec<String> =
                wanted.iter().map(|w| w.row.as_ref().map_or_else(String::new, |r| r.text("job"))).collect();
            let (kept, mut spare) = held.part(&jobs);
            let mut cursor = body.first_element_child();
            for ((wanted, job), kept) in wanted.iter().zip(jobs).zip(kept) {
                let swatch = wanted.row.as_deref().map_or("", &swatch);
                let mut shown = kept.or_else(|| spare.pop()).unwrap_or_else(|| Shown::new(swatch));
                let same =
                    same_look && shown.written && shown.swatch == swatch && shown.holds(wanted.row.as_ref());
                if !same {
                    shown.write(look, job, wanted.row.clone(), here, swatch);
                }
                shown.place(wanted.nth);
                match &cursor {
                    Some(next) if next.is_same_node(Some(&shown.element)) => {
                        cursor = next.next_element_sibling();
                    }
                    _ => {
                        let _ = body.insert_before(&shown.element, cursor.as_deref());
                    }
                }
                held.shown.push(shown);
            }
            if let Some(focus) = focus {
                focus.give_back(&held.shown);
            }
        });
    }

    /// Marks the rows, each by the path of its job.
    pub fn mark(self, marks: impl Fn(&str) -> Marks) {
        self.held.try_update_value(|held| {
            for shown in held.shown.iter_mut().filter(|shown| shown.row.is_some()) {
                shown.mark(marks(path_of(&shown.job)));
            }
        });
    }

    /// The paths of the jobs shown, in order.
    pub fn paths(self) -> Vec<String> {
        let of = |held: &Held| {
            let jobs = held.shown.iter().filter(|shown| shown.row.is_some());
            jobs.map(|shown| path_of(&shown.job).to_owned()).collect()
        };
        self.held.try_with_value(of).unwrap_or_default()
    }
}

impl Default for StaticRows {
    fn default() -> Self {
        Self::new()
    }
}

impl Held {
    /// What is shown already of these jobs, each at its place, and what is not wanted any more, out of the document.
    fn part(&mut self, jobs: &[String]) -> (Vec<Option<Shown>>, Vec<Shown>) {
        let mut old: Vec<Option<Shown>> = std::mem::take(&mut self.shown).into_iter().map(Some).collect();
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, shown) in old.iter().enumerate().rev() {
            places.entry(shown.as_ref().map(|s| s.job.clone()).unwrap_or_default()).or_default().push(place);
        }
        let kept = jobs.iter().map(|job| old[places.get_mut(job)?.pop()?].take()).collect();
        let spare: Vec<Shown> = old.into_iter().flatten().collect();
        for shown in &spare {
            shown.element.remove();
        }
        (kept, spare)
    }
}

impl Shown {
    fn new(swatch: &'static str) -> Self {
        let element = document().create_element("tr").expect("a document makes elements");
        Self {
            element,
            job: String::new(),
            row: None,
            nth: None,
            swatch,
            marks: Marks::default(),
            written: false,
        }
    }

    /// Whether this row is shown: the very same, or one that reads alike.
    fn holds(&self, row: Option<&Rc<Row>>) -> bool {
        match (&self.row, row) {
            (Some(shown), Some(row)) => Rc::ptr_eq(shown, row) || shown == row,
            (None, None) => true,
            _ => false,
        }
    }

    fn set(&self, name: &str, value: Option<&str>) {
        let _ = match value {
            Some(value) => self.element.set_attribute(name, value),
            None => self.element.remove_attribute(name),
        };
    }

    fn write(&mut self, look: &Look, job: String, row: Option<Rc<Row>>, here: &str, swatch: &'static str) {
        match &row {
            Some(row) => {
                self.set("data-testid", Some("result"));
                self.set("data-job", Some(&job));
                self.set("data-path", Some(path_of(&job)));
                self.set("data-href", Some(&row.job_path()));
                self.set("tabindex", Some("-1"));
                self.set("aria-selected", Some("false"));
                self.set("aria-hidden", None);
                self.set("class", None);
                self.element.set_inner_html(&look.cells(row, here, swatch));
            }
            None => {
                for name in [
                    "data-testid",
                    "data-job",
                    "data-path",
                    "data-href",
                    "tabindex",
                    "aria-selected",
                    "aria-rowindex",
                ] {
                    self.set(name, None);
                }
                self.nth = None;
                self.set("aria-hidden", Some("true"));
                self.set("class", Some("waiting"));
                let width = look.width();
                self.element.set_inner_html(&format!(
                    "<td colspan=\"{width}\"><span class=\"skeleton\"></span></td>"
                ));
            }
        }
        (self.job, self.row, self.swatch, self.written) = (job, row, swatch, true);
        self.marks = Marks::default();
    }

    /// Says where it stands, in a table of which not all rows are drawn.
    fn place(&mut self, nth: Option<usize>) {
        if self.nth != nth && self.row.is_some() {
            self.set("aria-rowindex", nth.map(|nth| (nth + 2).to_string()).as_deref());
            self.nth = nth;
        }
    }

    fn mark(&mut self, marks: Marks) {
        if self.marks == marks {
            return;
        }
        self.set("aria-selected", Some(if marks.picked || marks.pinned { "true" } else { "false" }));
        if let Some(pick) = self.find("[data-testid=pick]") {
            pick.unchecked_into::<web_sys::HtmlInputElement>().set_checked(marks.picked);
        }
        if let Some(before) = self.find("a[aria-current]") {
            let _ = before.remove_attribute("aria-current");
        }
        if let Some(now) =
            marks.explained.as_ref().and_then(|m| self.find(&format!("a[data-metric=\"{m}\"]")))
        {
            let _ = now.set_attribute("aria-current", "true");
        }
        self.marks = marks;
    }

    fn find(&self, css: &str) -> Option<web_sys::Element> {
        self.element.query_selector(css).ok().flatten()
    }
}

/// Where in the body the keyboard is.
struct Focus {
    element: web_sys::Element,
    job: String,
    /// What it is on within its row; nothing for the row itself.
    on: Option<String>,
}

impl Focus {
    fn within(body: &web_sys::Element) -> Option<Self> {
        let element = document().active_element().filter(|element| body.contains(Some(element)))?;
        let job = element.closest("tr[data-job]").ok()??.get_attribute("data-job")?;
        let on = match (element.get_attribute("data-metric"), element.get_attribute("data-testid").as_deref())
        {
            (Some(metric), _) => Some(format!("[data-metric=\"{metric}\"]")),
            (None, Some("pick")) => Some("[data-testid=pick]".to_owned()),
            (None, Some("result")) => None,
            (None, _) => element.get_attribute("href").map(|href| format!("a[href=\"{href}\"]")),
        };
        Some(Self { element, job, on })
    }

    fn give_back(self, shown: &[Shown]) {
        if document().active_element().is_some_and(|now| now.is_same_node(Some(&self.element))) {
            return;
        }
        let Some(row) = shown.iter().find(|shown| shown.job == self.job) else { return };
        let found = self.on.and_then(|css| row.find(&css)).unwrap_or_else(|| row.element.clone());
        focus_quietly(&found);
    }
}

/// Brings the address of a figure's proof up to date, where an event is at one: the address of the page may be another
/// since its row was written.
pub fn freshen(event: &web_sys::Event, here: impl Fn() -> String) {
    let Some(link) = at(event, "a[data-metric]") else { return };
    let row = link.closest("tr[data-path]").ok().flatten();
    let Some(path) = row.and_then(|row| row.get_attribute("data-path")) else { return };
    let metric = link.get_attribute("data-metric").unwrap_or_default();
    let _ = link.set_attribute("href", &proof_of(&here(), &path, &metric));
}

/// The path of the row whose box to pick it by was clicked.
pub fn picked(event: &web_sys::Event) -> Option<String> {
    at(event, "[data-testid=pick]")?.closest("tr[data-path]").ok()??.get_attribute("data-path")
}

fn at(event: &web_sys::Event, css: &str) -> Option<web_sys::Element> {
    event.target()?.dyn_into::<web_sys::Element>().ok()?.closest(css).ok()?
}
