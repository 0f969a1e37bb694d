//! `GET /api/docs`: the OpenAPI document for people, as one page without scripts, from this origin alone.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::api::html::{content_policy, style};

/// The handler.
pub async fn docs() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| page(super::document()).into_string());
    let headers: [(HeaderName, HeaderValue); 2] = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, content_policy()),
    ];
    (headers, PAGE.as_str()).into_response()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn page(document: &Value) -> Markup {
    let empty = Vec::new();
    let tags = document["tags"].as_array().unwrap_or(&empty);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Benchtrail API" }
                style { (PreEscaped(style())) }
            }
            body {
                h1 { "Benchtrail API " (text(&document["info"], "version")) }
                p { (text(&document["info"], "description")) }
                p { "The same as " a href="/api/openapi.json" { "OpenAPI 3.1" } "." }
                nav { ul { @for tag in tags { li { a href={ "#" (text(tag, "name")) } { (text(tag, "name")) } } } } }
                @for tag in tags { (section(document, tag)) }
                h2 id="schemas" { "Schemas" }
                @if let Some(schemas) = document["components"]["schemas"].as_object() {
                    @for (name, schema) in schemas {
                        details id={ "schema-" (name) } { summary { code { (name) } } (json(schema)) }
                    }
                }
            }
        }
    }
}

fn section(document: &Value, tag: &Value) -> Markup {
    let name = text(tag, "name");
    html! {
        h2 id=(name) { (name) }
        p { (text(tag, "description")) }
        @if let Some(paths) = document["paths"].as_object() {
            @for (path, item) in paths {
                @if let Some(methods) = item.as_object() {
                    @for (method, operation) in methods {
                        @if method != "head" && operation["tags"][0] == name {
                            (operation_of(method, path, operation))
                        }
                    }
                }
            }
        }
    }
}

fn operation_of(method: &str, path: &str, operation: &Value) -> Markup {
    let answers = &operation["responses"]["200"]["content"];
    html! {
        details id=(text(operation, "operationId")) {
            summary { code { (method.to_uppercase()) " " (path) } " – " (text(operation, "summary")) }
            @if let Some(parameters) = operation["parameters"].as_array().filter(|list| !list.is_empty()) {
                table {
                    thead { tr { th { "parameter" } th { "in" } th { "type" } th { "what" } } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                td { code { (text(parameter, "name")) } @if parameter["required"] == true { " (required)" } }
                                td { (text(parameter, "in")) }
                                td { (kind(&parameter["schema"])) }
                                td { (text(parameter, "description")) }
                            }
                        }
                    }
                }
            }
            @for (title, bodies) in [("Takes", &operation["requestBody"]["content"]), ("Answers", answers)] {
                @if let Some(bodies) = bodies.as_object() {
                    @for (media_type, body) in bodies {
                        h3 { (title) " " code { (media_type) } }
                        @if let Some(schema) = body.get("schema") { (schema_of(schema)) }
                    }
                }
            }
        }
    }
}

/// A reference as a link, a row as a table of its columns, anything else as it is.
fn schema_of(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return html! { p { a href={ "#schema-" (name) } { code { (name) } } } };
    }
    let columns = schema["items"]["properties"].as_object().or_else(|| schema["properties"].as_object());
    let Some(columns) = columns else { return json(schema) };
    html! {
        table {
            thead { tr { th { "column" } th { "type" } th { "what" } } }
            tbody {
                @for (name, column) in columns {
                    tr { td { code { (name) } } td { (kind(column)) } td { (text(column, "description")) } }
                }
            }
        }
    }
}

fn kind(schema: &Value) -> String {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(kind) => kind.clone(),
        _ => "any JSON".to_owned(),
    };
    match schema["pattern"].as_str() {
        Some(pattern) => format!("{kind} {pattern}"),
        None => kind,
    }
}

fn json(value: &Value) -> Markup {
    html! { pre { code { (serde_json::to_string_pretty(value).unwrap_or_default()) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_operation_and_loads_nothing() {
        let page = page(super::super::document()).into_string();
        for path in super::super::document()["paths"].as_object().unwrap().keys() {
            assert!(page.contains(path), "{path}");
        }
        for loaded in ["<script", " src=", "@import", "url(", "http://", "style=\""] {
            assert!(!page.contains(loaded), "the page holds {loaded}");
        }
    }
}
