//! The choice of a table's columns: a menu of boxes.

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::metrics::Column;
use crate::state::columns;

/// The columns of a table that are in the address.
#[derive(Clone, Copy)]
pub struct ColumnChoice {
    /// All that it can show, in order.
    all: fn() -> Vec<&'static Column>,
    /// Those it shows until others are chosen.
    normal: &'static [&'static str],
    address: Address,
    /// Those that it shows.
    pub shown: Memo<Vec<&'static Column>>,
}

impl ColumnChoice {
    /// The choice of the table whose settings are in this address.
    pub fn in_address(
        address: Address,
        all: fn() -> Vec<&'static Column>,
        normal: &'static [&'static str],
    ) -> Self {
        let shown = Memo::new(move |_| {
            let all = all();
            let known = |key: &str| all.iter().any(|column| column.key == key);
            let keys = address.query.with(|query| columns::read(query, known, normal));
            keys.iter().filter_map(|key| all.iter().find(|column| column.key == key).copied()).collect()
        });
        Self { all, normal, address, shown }
    }

    fn toggle(self, key: &'static str) {
        let all = (self.all)();
        let mut shown: Vec<String> =
            self.shown.with_untracked(|shown| shown.iter().map(|column| column.key.to_owned()).collect());
        columns::toggle(&mut shown, key, |key| all.iter().position(|column| column.key == key));
        self.address.change(|query| columns::write(&shown, self.normal, query));
    }
}

/// The menu of a table whose columns are in the address.
#[component]
pub fn ChosenColumns(choice: ColumnChoice) -> impl IntoView {
    let shown =
        Callback::new(move |key: &'static str| choice.shown.with(|shown| shown.iter().any(|c| c.key == key)));
    let toggle = Callback::new(move |key: &'static str| choice.toggle(key));
    view! { <ColumnChooser all=(choice.all)() shown toggle/> }
}

/// The menu.
#[component]
pub fn ColumnChooser(
    /// All columns, in order.
    all: Vec<&'static Column>,
    /// Whether one is shown.
    shown: Callback<&'static str, bool>,
    /// Shows or hides one.
    toggle: Callback<&'static str>,
) -> impl IntoView {
    let boxes = all.into_iter().map(|c| {
        view! {
            <label class="check" title=c.definition()>
                <input type="checkbox" data-column=c.key prop:checked=move || shown.run(c.key) on:change=move |_| toggle.run(c.key)/>
                {format!(" {}", c.head())}
            </label>
        }
    });
    view! {
        <details class="menu" data-testid="columns">
            <summary class="button">"Columns"</summary>
            <div class="menu-box">{boxes.collect_view()}</div>
        </details>
    }
    .into_any()
}
