//! The views of the catalogue. An organisation's own entry stands before the platform's of the same code; the layers of
//! engine arguments are opened out of the rows that hold them.

use super::models::catalogue::{
    AcceleratorRow, ApprovalRow, ConfigRow, EngineArgsSetRow, FrameworkRow, ModelRow, ToolRow,
};
use super::table::Row;
use super::text::{Column, Kind};
use super::views::{ViewDef, column, plain, selected, shown};

/// Every view of the catalogue.
pub(super) fn all() -> Vec<ViewDef> {
    vec![
        own_first::<ModelRow>("v_models"),
        own_first::<FrameworkRow>("v_frameworks"),
        own_first::<AcceleratorRow>("v_accelerator_types"),
        own_first::<ConfigRow>("v_server_configs"),
        own_first::<ToolRow>("v_tools"),
        own_first::<EngineArgsSetRow>("v_framework_engine_args_sets"),
        plain::<ApprovalRow>("v_dangerous_arg_approvals"),
        templates(),
        values(),
        metrics(),
    ]
}

/// The condition that leaves out the platform's entries that the reader's organisation replaced.
fn not_replaced<R: Row>() -> String {
    let same: Vec<String> =
        R::KEY.iter().filter(|key| **key != "org").map(|key| format!("o.{key} = t.{key}")).collect();
    format!(
        "not (t.org = '_' and exists (select 1 from {{{}}} o
            where o.org <> '_' and o.org = (select current_setting('app.org', true)) and {}))",
        R::TABLE,
        same.join(" and ")
    )
}

fn own_first<R: Row>(name: &'static str) -> ViewDef {
    let view = plain::<R>(name);
    let names = selected(&view.columns, "t.");
    ViewDef {
        select: format!("select {names} from {{{}}} t where {}", R::TABLE, not_replaced::<R>()),
        ..view
    }
}

/// The columns that a view takes over from the rows it opens.
fn taken<R: Row>(names: &[&str]) -> Vec<Column> {
    shown(R::columns()).into_iter().filter(|column| names.contains(&column.name.as_str())).collect()
}

/// The first layer: which arguments a framework version has.
fn templates() -> ViewDef {
    let own = taken::<FrameworkRow>(&["framework_code", "framework_version", "custom", "position"]);
    let mut columns = own.clone();
    let of_argument = [
        ("cli_flag", Kind::Text, "a.value ->> 'cli_flag'"),
        ("type", Kind::Text, "a.value ->> 'type'"),
        ("default", Kind::Json, "a.value -> 'default'"),
        ("min", Kind::Float, "(a.value ->> 'min')::double precision"),
        ("max", Kind::Float, "(a.value ->> 'max')::double precision"),
        ("choices", Kind::Json, "coalesce(a.value -> 'choices', '[]')"),
        ("words", Kind::Json, "coalesce(a.value -> 'words', '[]')"),
        ("dangerous", Kind::Bool, "coalesce((a.value ->> 'dangerous')::boolean, false)"),
        ("env", Kind::Bool, "coalesce((a.value ->> 'env')::boolean, false)"),
        ("commonly_used", Kind::Bool, "coalesce((a.value ->> 'commonly_used')::boolean, false)"),
        ("meaning", Kind::Text, "a.value ->> 'meaning'"),
        ("note", Kind::Text, "a.value ->> 'note'"),
        ("source", Kind::Text, "a.value ->> 'source'"),
    ];
    columns.push(column("key", Kind::Text));
    columns.extend(of_argument.iter().map(|(name, kind, _)| column(name, *kind)));
    let expressions: Vec<String> = of_argument
        .iter()
        .map(|(name, kind, sql)| match kind {
            Kind::Text => format!("({sql}) collate \"C\" as \"{name}\""),
            _ => format!("{sql} as \"{name}\""),
        })
        .collect();
    ViewDef {
        select: format!(
            "select {}, a.key collate \"C\" as key, {} from {{frameworks}} t
               cross join lateral jsonb_each(t.engine_args) a where {}",
            selected(&own, "t."),
            expressions.join(", "),
            not_replaced::<FrameworkRow>()
        ),
        columns,
        ..plain::<FrameworkRow>("v_framework_engine_args_templates")
    }
}

/// The third layer: which value a set gives to which argument; a sidecar's arguments name the sidecar.
fn values() -> ViewDef {
    let own = taken::<EngineArgsSetRow>(&[
        "set_code",
        "framework_code",
        "framework_version",
        "verified",
        "archived",
        "custom",
        "position",
    ]);
    let mut columns = own.clone();
    columns.extend([column("sidecar", Kind::Text), column("key", Kind::Text), column("value", Kind::Json)]);
    ViewDef {
        select: format!(
            "select {}, a.sidecar collate \"C\" as sidecar, a.key collate \"C\" as key, a.value
               from {{engine_args_sets}} t
               cross join lateral (
                   select null::text as sidecar, e.key, e.value from jsonb_each(t.engine_args) e
                   union all
                   select c.value ->> 'framework_code', e.key, e.value
                     from jsonb_array_elements(t.companions) c
                     cross join lateral jsonb_each(c.value -> 'values') e) a
              where {}",
            selected(&own, "t."),
            not_replaced::<EngineArgsSetRow>()
        ),
        columns,
        ..plain::<EngineArgsSetRow>("v_framework_engine_args_values")
    }
}

/// What every figure is called, its unit, which direction is better, and its definition.
fn metrics() -> ViewDef {
    let text = |value: &str| format!("'{}'", value.replace('\'', "''"));
    let rows: Vec<String> = events::metrics::all()
        .iter()
        .map(|metric| {
            let direction = match metric.direction {
                events::metrics::Direction::Higher => "higher",
                events::metrics::Direction::Lower => "lower",
                events::metrics::Direction::Neutral => "neutral",
            };
            let columns =
                [metric.column.as_str(), &metric.label, metric.unit, direction, &metric.definition].map(text);
            format!("({})", columns.join(", "))
        })
        .collect();
    let names = ["metric", "label", "unit", "direction", "definition"];
    let collated: Vec<String> =
        names.iter().map(|name| format!("m.{name} collate \"C\" as {name}")).collect();
    ViewDef {
        name: "v_metric_catalogue",
        select: format!(
            "select {}, '_'::text as org, 'public'::text as visibility, ''::text as owner
               from (values {}) as m ({})",
            collated.join(", "),
            rows.join(", "),
            names.join(", ")
        ),
        columns: names.iter().map(|name| column(name, Kind::Text)).collect(),
        tables: vec![],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}
