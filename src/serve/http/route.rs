//! One operation of the server: its method, path, access and schemas.
//!
//! Schemas are derived from the types that parse a body and form an answer, so they cannot differ from the
//! behaviour of the server.

use axum::routing::MethodRouter;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::serve::operations::whole;

use super::state::Server;

/// Pattern of a skill name.
pub(super) const SKILL: &str =
    r"^[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*/[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*$";

/// Description of a successful response.
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) about: &'static str,
    pub(super) schema: fn() -> Value,
}

/// One method of one path.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Operation id in the description.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// `true` if a client needs no token: the response reveals nothing of the memory.
    pub(super) is_open: bool,
    /// Query parameters, as a schema.
    pub(super) parameters: Option<fn() -> Value>,
    /// Body, as a schema.
    pub(super) body: Option<fn() -> Value>,
    pub(super) answer: Answer,
    pub(super) handler: MethodRouter<Server>,
}

impl Route {
    /// Creates a route for callers with a token, which answers with an object.
    pub(super) fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Server>,
    ) -> Self {
        Self {
            method,
            path,
            handler,
            id: "",
            summary: "",
            is_open: false,
            parameters: None,
            body: None,
            answer: Answer {
                status: "200",
                content_type: "application/json",
                about: "An object",
                schema: object,
            },
        }
    }

    /// Sets the operation id and the summary.
    pub(super) fn named(self, id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            ..self
        }
    }

    /// Sets the type of the answer.
    pub(super) fn answers<A: JsonSchema>(mut self, about: &'static str) -> Self {
        self.answer.about = about;
        self.answer.schema = written::<A>;
        self
    }

    /// Sets the rows of the answer, of which a client may choose the columns.
    pub(super) fn answers_rows<R: JsonSchema>(mut self, about: &'static str) -> Self {
        self.answer.about = about;
        self.answer.schema = rows::<R>;
        self
    }

    /// Sets the content type of an answer that is no JSON document.
    pub(super) fn answers_lines(mut self, content_type: &'static str, about: &'static str) -> Self {
        self.answer = Answer {
            content_type,
            about,
            schema: || json!({ "type": "string" }),
            ..self.answer
        };
        self
    }

    /// Answers with 201.
    pub(super) fn creates(mut self) -> Self {
        self.answer.status = "201";
        self
    }

    /// Opens the route to clients without a token.
    pub(super) fn open(self) -> Self {
        Self {
            is_open: true,
            ..self
        }
    }

    /// Adds query parameters.
    pub(super) fn parameters<P: JsonSchema>(self) -> Self {
        Self {
            parameters: Some(read::<P>),
            ..self
        }
    }

    /// Adds a body.
    pub(super) fn body<B: JsonSchema>(self) -> Self {
        self.body_of(read::<B>)
    }

    /// Adds a body with this schema.
    pub(super) fn body_of(self, schema: fn() -> Value) -> Self {
        Self {
            body: Some(schema),
            ..self
        }
    }
}

/// Returns the schema of any object.
pub(super) fn object() -> Value {
    json!({ "type": "object" })
}

/// Maximum number of rows in one insertion.
pub(super) const ROWS: usize = 50;

/// Returns the schema of one row to insert, or of a list of rows.
pub(super) fn items<T: JsonSchema>() -> Value {
    let list = json!({ "type": "array", "items": read::<T>(), "minItems": 1, "maxItems": ROWS });
    json!({ "anyOf": [read::<T>(), list] })
}

/// Returns the schema of rows with chosen columns, or of the one that `.single()` requests.
fn rows<T: JsonSchema>() -> Value {
    let mut row = written::<T>();
    if let Some(row) = row.as_object_mut() {
        row.remove("required");
    }
    json!({ "anyOf": [{ "type": "array", "items": row }, row] })
}

fn read<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12())
}

fn written<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = whole::<T>(settings);
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
    }
    schema
}
