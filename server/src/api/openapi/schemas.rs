//! The document's schemas: one set of components for what is sent and what is answered.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::contract::SchemaOf;
use crate::projections::{Column, Kind};

const COMPONENTS: &str = "#/components/schemas/";

/// Gathers schemas. A type may look different when it is sent (defaults may be left out) and when it is answered
/// (everything stands there); it then has two components, the sent one called `…Input`.
pub struct Schemas {
    sent: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Schemas {
    /// None yet.
    pub fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        Self {
            sent: settings().for_deserialize().into_generator(),
            answered: settings().for_serialize().into_generator(),
        }
    }

    /// The schema of something that is sent.
    pub fn sent(&mut self, of: SchemaOf) -> Value {
        Schema::to_value(of(&mut self.sent))
    }

    /// The schema of something that is answered.
    pub fn answered(&mut self, of: SchemaOf) -> Value {
        Schema::to_value(of(&mut self.answered))
    }

    /// The properties of a sent object, each with whether it must be there: for query parameters.
    pub fn properties(&mut self, of: SchemaOf) -> Vec<(String, Value, bool)> {
        let mut schema = self.sent(of);
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix(COMPONENTS)) {
            schema = self.sent.definitions().get(name).cloned().unwrap_or_default();
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        properties
            .into_iter()
            .map(|(name, schema)| {
                let needed = required.iter().any(|known| known == name.as_str());
                (name, without_null(schema), needed)
            })
            .collect()
    }

    /// Every component, and the paths with their references set right.
    pub fn into_components(self, sent: &mut [&mut Value]) -> Map<String, Value> {
        let mut components = self.answered.definitions().clone();
        let mut sent_definitions = self.sent.definitions().clone();
        let both: Vec<String> = sent_definitions
            .iter()
            .filter(|(name, schema)| components.get(*name).is_some_and(|other| other != *schema))
            .map(|(name, _)| name.clone())
            .collect();
        // Whatever refers to one that differs, differs too.
        let renamed = dependents(&sent_definitions, both, &components);
        for schema in sent_definitions.values_mut().chain(sent.iter_mut().map(|value| &mut **value)) {
            rename(schema, &renamed);
        }
        for (name, schema) in sent_definitions {
            let name = if renamed.contains(&name) { format!("{name}Input") } else { name };
            components.insert(name, schema);
        }
        components
    }
}

fn dependents(
    sent: &Map<String, Value>,
    mut renamed: Vec<String>,
    answered: &Map<String, Value>,
) -> Vec<String> {
    loop {
        let more: Vec<String> = sent
            .iter()
            .filter(|(name, schema)| {
                !renamed.contains(name)
                    && answered.contains_key(*name)
                    && renamed.iter().any(|other| refers(schema, other))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return renamed;
        }
        renamed.extend(more);
    }
}

fn refers(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| {
            (key == "$ref" && value.as_str() == Some(&format!("{COMPONENTS}{name}"))) || refers(value, name)
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, name)),
        _ => false,
    }
}

fn rename(schema: &mut Value, renamed: &[String]) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                let target =
                    value.as_str().filter(|_| key == "$ref").and_then(|path| path.strip_prefix(COMPONENTS));
                match target {
                    Some(name) if renamed.iter().any(|known| known == name) => {
                        *value = Value::String(format!("{COMPONENTS}{name}Input"));
                    }
                    Some(_) => {}
                    None => rename(value, renamed),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        _ => {}
    }
}

/// A query parameter is there or not; it is never null.
fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema["type"].as_array() {
        let kept: Vec<&Value> = types.iter().filter(|kind| *kind != "null").collect();
        if let [only] = kept.as_slice() {
            schema["type"] = (*only).clone();
        }
    }
    if let Some(map) = schema.as_object_mut() {
        map.remove("default");
    }
    schema
}

/// The schema of a view's column: every one may be null.
pub fn of_column(column: &Column) -> Value {
    let mut schema = match column.kind {
        Kind::Text => json!({"type": ["string", "null"]}),
        Kind::Int => json!({"type": ["integer", "null"], "format": "int64"}),
        Kind::Float => json!({"type": ["number", "null"], "format": "double"}),
        Kind::Bool => json!({"type": ["boolean", "null"]}),
        Kind::Time => json!({"type": ["string", "null"], "format": "date-time"}),
        Kind::Json => json!({}),
        Kind::Floats => json!({"type": ["array", "null"], "items": {"type": ["number", "null"]}}),
        Kind::Ints => json!({"type": ["array", "null"], "items": {"type": ["integer", "null"]}}),
        Kind::Times => {
            json!({"type": ["array", "null"], "items": {"type": ["string", "null"], "format": "date-time"}})
        }
    };
    if let Some(metric) = events::metrics::metric(&column.name) {
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" [{}]", metric.unit) };
        schema["description"] = format!("{}{unit}: {}", metric.label, metric.definition).into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::contract::schema_of;

    #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
    #[allow(dead_code, reason = "looked at by its schema only")]
    struct Both {
        #[serde(default)]
        defaulted: bool,
    }

    #[test]
    fn a_type_that_is_sent_otherwise_than_answered_has_two_components() {
        let mut schemas = Schemas::new();
        let mut sent = schemas.sent(schema_of::<Both>);
        let answered = schemas.answered(schema_of::<Both>);
        let components = schemas.into_components(&mut [&mut sent]);
        assert_eq!(sent["$ref"], "#/components/schemas/BothInput");
        assert_eq!(answered["$ref"], "#/components/schemas/Both");
        assert!(components["BothInput"].get("required").is_none());
        assert_eq!(components["Both"]["required"], json!(["defaulted"]));
    }
}
