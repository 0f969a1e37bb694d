//! The head of a column that the table can be sorted by; the order is in the address.

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::state::order::Order;

/// A `th` with a button: the first click puts the better or the first end first, the second the other, the third takes
/// the order away.
#[component]
pub fn SortHead(
    /// Where the order is kept.
    address: Address,
    /// The order that is in force.
    order: Memo<Option<Order>>,
    /// The column, as the view calls it.
    key: &'static str,
    /// The column, as people call it.
    label: &'static str,
    /// The unit; empty for none.
    #[prop(optional)]
    unit: &'static str,
    /// The classes of the head.
    #[prop(optional)]
    class: &'static str,
) -> impl IntoView {
    let sort = move || {
        order.with(|o| {
            let own = o.as_ref().filter(|o| o.key == key)?;
            Some(if own.descending { "descending" } else { "ascending" })
        })
    };
    let click = move |_| {
        let next = order.with_untracked(|o| Order::clicked(o.as_ref(), key));
        address.change(|query| Order::write(next.as_ref(), query));
    };
    view! {
        <th scope="col" class=class aria-sort=sort>
            <button type="button" class="sort" data-sort=key on:click=click>{label}</button>
            {(!unit.is_empty()).then(|| view! { " "<span class="unit">{unit}</span> })}
        </th>
    }
    .into_any()
}
