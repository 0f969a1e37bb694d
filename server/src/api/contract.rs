//! What a route or a command takes and gives, as JSON Schema: what the OpenAPI document is made of.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of one type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`, as a reference to a component where it has a name.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A body: its media type, and its schema where it is JSON.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// The media type.
    pub media_type: &'static str,
    /// The schema; nothing for bytes and text.
    pub schema: Option<SchemaOf>,
}

/// What a route takes and gives. What is left out it does not have.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// The query's parameters, as the properties of an object.
    pub query: Option<SchemaOf>,
    /// Header fields it looks at.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body it takes.
    pub body: Option<Content>,
    /// The bodies it answers with, one a media type.
    pub answers: Vec<Content>,
}

impl Contract {
    /// With these query parameters.
    #[must_use]
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(schema_of::<T>);
        self
    }

    /// With these header fields.
    #[must_use]
    pub fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Taking this JSON.
    #[must_use]
    pub fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Content { media_type: "application/json", schema: Some(schema_of::<T>) });
        self
    }

    /// Taking these bytes.
    #[must_use]
    pub fn takes_bytes(mut self, media_type: &'static str) -> Self {
        self.body = Some(Content { media_type, schema: None });
        self
    }

    /// Answering this JSON.
    #[must_use]
    pub fn gives<T: JsonSchema>(mut self) -> Self {
        self.answers.push(Content { media_type: "application/json", schema: Some(schema_of::<T>) });
        self
    }

    /// Answering server-sent events with this JSON as their data.
    #[must_use]
    pub fn gives_events<T: JsonSchema>(mut self) -> Self {
        self.answers.push(Content { media_type: "text/event-stream", schema: Some(schema_of::<T>) });
        self
    }

    /// Answering text or bytes of this media type.
    #[must_use]
    pub fn gives_text(mut self, media_type: &'static str) -> Self {
        self.answers.push(Content { media_type, schema: None });
        self
    }
}
