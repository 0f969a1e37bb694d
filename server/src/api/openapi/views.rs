//! What a view's operation takes and gives, in PostgREST's dialect.

use serde_json::{Value, json};

use super::schemas::of_column;
use super::{security, with_refusals};
use crate::api::router::Access;
use crate::projections::views::ViewDef;
use crate::projections::{Column, Kind};

/// `GET /api/<view>`, or `HEAD`: the same without its body.
pub(super) fn operation(view: &ViewDef, head: bool) -> Value {
    let columns: serde_json::Map<String, Value> =
        view.columns.iter().map(|column| (column.name.clone(), of_column(column))).collect();
    let row = json!({"type": "object", "properties": columns});
    let content = if head {
        json!({})
    } else {
        json!({
            "application/json": {"schema": {"type": "array", "items": row}},
            "application/vnd.pgrst.object+json": {"schema": row},
            "application/x-ndjson": {},
            "text/csv": {},
            "application/vnd.apache.parquet": {},
        })
    };
    let headers = json!({
        "Content-Range": {
            "description": "`first-last/total` of the rows; `*` for a total that was not asked for.",
            "schema": {"type": "string"},
        },
        "Preference-Applied": {
            "description": "Which wishes of `Prefer` were followed.",
            "schema": {"type": "string"},
        },
    });
    let mut parameters = vec![
        query(
            "select",
            "Columns, `name` or `new_name:name`, with commas; `*` for all.",
            r"^[A-Za-z0-9_:*, ]*$",
        ),
        query(
            "order",
            "Columns, each with `.asc` or `.desc` and then `.nullsfirst` or `.nullslast`.",
            r"^([a-z0-9_]+(\.(asc|desc))?(\.(nullsfirst|nullslast))?,?)*$",
        ),
        count("limit", "The most rows."),
        count("offset", "Rows left out at the beginning."),
        query("and", "All of these: `(a.eq.1,b.gt.2)`.", r"^\(.+\)$"),
        query("or", "One of these: `(a.eq.1,and(b.gt.2,c.is.null))`.", r"^\(.+\)$"),
        query(
            "provenance",
            "Of exports: `columns` adds run, job, position, hash and `as_of_position` to the columns selected, `none` leaves \
             them out; without it they are there where every column is asked for.",
            r"^(columns|none)$",
        ),
        super::header(
            "prefer",
            "`count=exact`, `count=planned` or `count=estimated`; `at-least=<position>`.",
        ),
        super::header(
            "range",
            "`0-24`: the first and the last row, where the query has neither limit nor offset.",
        ),
    ];
    if view.history.is_some() {
        parameters.push(query(
            "as_of",
            "The rows as they stood at this position of the log, or at this time.",
            r"^([0-9]{1,18}|[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$",
        ));
    }
    parameters.extend(view.columns.iter().map(filter));
    let done = |description: &str| {
        let mut response = json!({"description": description, "headers": headers});
        if !head {
            response["content"] = content.clone();
        }
        response
    };
    json!({
        "operationId": format!("{}_{}", if head { "head" } else { "get" }, view.name),
        "tags": ["views"],
        "summary": format!("{}{}.", if head { "The extent of the rows of " } else { "The rows of " }, view.name),
        "security": security(Access::Anyone),
        "parameters": parameters,
        "responses": with_refusals(json!({
            "200": done("The rows."),
            "206": done("Some of the rows: there are more, as `Content-Range` says."),
        })),
    })
}

fn query(name: &str, description: &str, pattern: &str) -> Value {
    json!({
        "name": name, "in": "query", "required": false, "description": description,
        "schema": {"type": "string", "pattern": pattern},
    })
}

fn count(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "query", "required": false, "description": description,
        "schema": {"type": "integer", "format": "int64", "minimum": 0},
    })
}

/// `column=op.value`.
fn filter(column: &Column) -> Value {
    let (operators, example) = match column.kind {
        Kind::Text => ("eq|neq|gt|gte|lt|lte|in|is|like|ilike", "eq.text"),
        Kind::Bool => ("eq|neq|is", "is.true"),
        Kind::Int | Kind::Float => ("eq|neq|gt|gte|lt|lte|in|is", "gte.1"),
        Kind::Time => ("eq|neq|gt|gte|lt|lte|in|is", "gte.2026-01-31T08:15:30Z"),
        Kind::Json => ("cs|is", "is.null"),
        Kind::Floats | Kind::Ints | Kind::Times => ("is", "is.null"),
    };
    json!({
        "name": column.name, "in": "query", "required": false,
        "schema": {"type": "string", "pattern": format!(r"^(not\.)?({operators})\."), "examples": [example]},
    })
}
