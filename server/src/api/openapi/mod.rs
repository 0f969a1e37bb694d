//! The OpenAPI document: made of the route table, the commands and the views, so that none of them can be missing.

mod page;
mod schemas;
mod views;

use std::sync::LazyLock;

use axum::Json;
use events::api::ApiError;
use serde_json::{Map, Value, json};

pub use page::docs;

use self::schemas::Schemas;
use super::contract::{Content, schema_of};
use super::router::{Access, Route, routes};
use super::rpc::{COMMANDS, Command};
use crate::projections::views as read_views;

/// `GET /api/openapi.json`.
pub async fn openapi() -> Json<&'static Value> {
    Json(document())
}

/// The whole document.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(build);
    &DOCUMENT
}

fn build() -> Value {
    let mut schemas = Schemas::new();
    let error = schemas.answered(schema_of::<ApiError>);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        match route.path {
            "/api/rpc/{command}" => {
                for command in COMMANDS {
                    let operation = command_operation(command, &mut schemas);
                    put(&mut paths, &format!("/api/rpc/{}", command.name), "post", operation);
                }
            }
            "/api/{view}" => {
                for view in read_views::all().iter().filter(|view| view.served) {
                    let path = format!("/api/{}", view.name);
                    put(&mut paths, &path, "get", views::operation(view, false));
                    put(&mut paths, &path, "head", views::operation(view, true));
                }
            }
            path => {
                let method = route.method.as_str().to_ascii_lowercase();
                let operation = route_operation(&route, &mut schemas);
                put(&mut paths, &path.replace("{*", "{"), &method, operation);
            }
        }
    }
    // What is sent stands in bodies and parameters; what is answered keeps its names.
    let mut sent: Vec<&mut Value> = Vec::new();
    for item in paths.values_mut().filter_map(Value::as_object_mut) {
        for operation in item.values_mut().filter_map(Value::as_object_mut) {
            for (key, value) in operation {
                if key == "requestBody" || key == "parameters" {
                    sent.push(value);
                }
            }
        }
    }
    let components = schemas.into_components(&mut sent);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Benchtrail",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Commands are `POST /api/rpc/<command>` with `p_*` arguments by natural key; reads are \
                `GET /api/<view>` in PostgREST's dialect. Every error is `{code, message, details, hint}`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "process", "description": "Is it alive, and can it do its work."},
            {"name": "commands", "description": "Everything a person can do."},
            {"name": "views", "description": "Everything that can be read."},
            {"name": "log", "description": "History, proofs, the live stream, reports."},
            {"name": "agents", "description": "The one door for agents."},
        ],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                "Refusal": {
                    "description": "Not done as asked: what happened, why, and what to do.",
                    "content": {"application/json": {"schema": error}},
                },
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token, `bt_u_…`."},
                "session": {
                    "type": "apiKey", "in": "cookie", "name": crate::auth::sessions::COOKIE,
                    "description": "What `sign_in` sets. Changes then need `x-benchtrail-csrf: 1`.",
                },
                "agent": {"type": "http", "scheme": "bearer", "description": "An agent's token, `bt_a_…`."},
            },
        },
    })
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    paths.entry(path).or_insert_with(|| json!({}))[method] = operation;
}

fn security(access: Access) -> Value {
    match access {
        Access::Anyone => json!([{}, {"token": []}, {"session": []}]),
        Access::Person(_) => json!([{"token": []}, {"session": []}]),
        Access::Agent => json!([{"agent": []}]),
        Access::Session => json!([{"session": []}]),
    }
}

/// Refusals and passing trouble, the same for every operation.
fn with_refusals(mut responses: Value) -> Value {
    let refusal = json!({"$ref": "#/components/responses/Refusal"});
    responses["4XX"] = refusal.clone();
    responses["503"] = refusal;
    responses
}

fn content(contents: &[Content], mut schema: impl FnMut(super::contract::SchemaOf) -> Value) -> Value {
    let mut by_type = Map::new();
    for content in contents {
        let body = content.schema.map_or_else(|| json!({}), |of| json!({"schema": schema(of)}));
        by_type.insert(content.media_type.to_owned(), body);
    }
    Value::Object(by_type)
}

fn command_operation(command: &Command, schemas: &mut Schemas) -> Value {
    let args = schemas.sent(command.args);
    let reply = schemas.answered(command.reply);
    json!({
        "operationId": command.name,
        "tags": ["commands"],
        "summary": command.about,
        "security": security(command.access),
        "parameters": [header("idempotency-key", "The caller's own word for this very request: sent again with the \
            same body, it is carried out once and answered alike.")],
        "requestBody": {"required": true, "content": {"application/json": {"schema": args}}},
        "responses": with_refusals(json!({
            "200": {"description": "Done.", "content": {"application/json": {"schema": reply}}},
        })),
    })
}

fn header(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": description, "schema": {"type": "string"}})
}

fn tag_of(path: &str) -> &'static str {
    if path.starts_with("/api/agent/") {
        "agents"
    } else if path.starts_with("/api/") {
        "log"
    } else {
        "process"
    }
}

fn route_operation(route: &Route, schemas: &mut Schemas) -> Value {
    let contract = &route.contract;
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let name = name.trim_start_matches('*');
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
        })
        .collect();
    if let Some(query) = contract.query {
        for (name, schema, required) in schemas.properties(query) {
            parameters.push(json!({"name": name, "in": "query", "required": required, "schema": schema}));
        }
    }
    parameters.extend(contract.headers.iter().map(|(name, description)| header(name, description)));
    let answers = if contract.answers.is_empty() {
        let location = json!({"description": "Where to.", "schema": {"type": "string"}});
        json!({"303": {"description": "The browser is sent on to the page.", "headers": {"location": location}}})
    } else {
        let content = content(&contract.answers, |of| schemas.answered(of));
        json!({"200": {"description": "Done.", "content": content}})
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [tag_of(route.path)],
        "summary": route.about,
        "security": security(route.access),
        "parameters": parameters,
        "responses": with_refusals(answers),
    });
    if let Some(body) = contract.body {
        operation["requestBody"] =
            json!({"required": true, "content": content(&[body], |of| schemas.sent(of))});
    }
    operation
}

/// `get_api_agent_claim`: the method and the path's words.
fn operation_id(route: &Route) -> String {
    let words: Vec<&str> =
        route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{}_{}", route.method.as_str().to_ascii_lowercase(), words.join("_"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn operation(path: &str, method: &str) -> &'static Value {
        let found = &document()["paths"][path][method];
        assert!(found.is_object(), "{method} {path} is not in the document");
        found
    }

    #[test]
    fn every_route_command_and_view_is_in_the_document() {
        for route in routes().iter().filter(|r| !["/api/rpc/{command}", "/api/{view}"].contains(&r.path)) {
            let method = route.method.as_str().to_ascii_lowercase();
            let found = operation(&route.path.replace("{*", "{"), &method);
            assert_eq!(found["summary"], route.about);
            let says = match found["responses"].get("303") {
                Some(sent_on) => sent_on["headers"]["location"].is_object(),
                None => !found["responses"]["200"]["content"].as_object().unwrap().is_empty(),
            };
            assert!(says, "{} {} says nothing of what it answers", route.method, route.path);
        }
        for command in COMMANDS {
            let found = operation(&format!("/api/rpc/{}", command.name), "post");
            assert_eq!(found["operationId"], command.name);
        }
        for view in read_views::all().iter().filter(|view| view.served) {
            let found = operation(&format!("/api/{}", view.name), "get");
            let row =
                &found["responses"]["200"]["content"]["application/json"]["schema"]["items"]["properties"];
            for column in &view.columns {
                assert!(row.get(&column.name).is_some(), "{}.{}", view.name, column.name);
            }
        }
    }

    #[test]
    fn every_reference_leads_to_a_component_and_every_operation_has_its_own_name() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    for (key, value) in map {
                        match value.as_str() {
                            Some(path) if key == "$ref" => found.push(path.to_owned()),
                            _ => references(value, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        references(document(), &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for path in found {
            let pointer = path.strip_prefix('#').unwrap();
            assert!(document().pointer(pointer).is_some(), "{path} leads nowhere");
        }
        let mut names = HashSet::new();
        for item in document()["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                assert!(
                    names.insert(operation["operationId"].as_str().unwrap()),
                    "{}",
                    operation["operationId"]
                );
            }
        }
    }

    #[test]
    fn a_commands_arguments_are_typed_and_no_others_are_taken() {
        let name = operation("/api/rpc/start_run", "post")["requestBody"]["content"]["application/json"]["schema"]
            ["$ref"]
            .as_str()
            .unwrap();
        let args = document().pointer(name.strip_prefix('#').unwrap()).unwrap();
        assert_eq!(args["additionalProperties"], false);
        assert_eq!(args["properties"]["p_project_code"]["type"], "string");
        assert!(args["required"].as_array().unwrap().contains(&json!("p_hostname")));
    }
}
