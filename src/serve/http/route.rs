//! One operation of the server: its method, path, access and schemas; and the `OpenAPI` 3.1 description of all.
//!
//! Schemas are derived from the types that parse a body and form an answer, so they cannot differ from the
//! behaviour of the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::routing::MethodRouter;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::serve::operations::{trim, whole};

use super::input::ROWS;
use super::state::Server;

/// Pattern of a skill name.
pub(super) const SKILL: &str =
    r"^[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*/[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*$";

/// Paths for which a client needs no token: the response reveals nothing of the memory.
pub(super) const OPEN: [&str; 2] = ["/healthz", "/openapi.json"];

/// One method of one path.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Operation id in the description.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// Query parameters, as a schema.
    pub(super) parameters: Option<fn() -> Value>,
    /// Body, as a schema.
    pub(super) body: Option<fn() -> Value>,
    /// Successful response: its status, content type, description and schema.
    pub(super) status: &'static str,
    content_type: &'static str,
    about: &'static str,
    answer: fn() -> Value,
    pub(super) handler: MethodRouter<Arc<Server>>,
}

impl Route {
    /// Creates a route for callers with a token, which answers with an object.
    pub(super) fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Arc<Server>>,
    ) -> Self {
        Self {
            method,
            path,
            handler,
            id: "",
            summary: "",
            parameters: None,
            body: None,
            status: "200",
            content_type: "application/json",
            about: "An object",
            answer: object,
        }
    }

    /// Sets the operation id and the summary.
    pub(super) fn named(mut self, id: &'static str, summary: &'static str) -> Self {
        self.id = id;
        self.summary = summary;
        self
    }

    /// Sets the type of the answer.
    pub(super) fn answers<A: JsonSchema>(self, about: &'static str) -> Self {
        self.answers_with(about, written::<A>)
    }

    /// Sets the schema of the answer.
    pub(super) fn answers_with(mut self, about: &'static str, schema: fn() -> Value) -> Self {
        self.about = about;
        self.answer = schema;
        self
    }

    /// Sets the content type of an answer that is no JSON document.
    pub(super) fn answers_lines(mut self, content_type: &'static str, about: &'static str) -> Self {
        self.content_type = content_type;
        self.about = about;
        self.answer = || json!({ "type": "string" });
        self
    }

    /// Answers with 201.
    pub(super) fn creates(mut self) -> Self {
        self.status = "201";
        self
    }

    /// Adds query parameters.
    pub(super) fn parameters<P: JsonSchema>(mut self) -> Self {
        self.parameters = Some(read::<P>);
        self
    }

    /// Adds a body.
    pub(super) fn body<B: JsonSchema>(self) -> Self {
        self.body_of(read::<B>)
    }

    /// Adds a body with this schema.
    pub(super) fn body_of(mut self, schema: fn() -> Value) -> Self {
        self.body = Some(schema);
        self
    }
}

/// Returns the schema of any object.
pub(super) fn object() -> Value {
    json!({ "type": "object" })
}

/// Returns the schema of one row to insert, or of a list of rows.
pub(super) fn items<T: JsonSchema>() -> Value {
    let list = json!({ "type": "array", "items": read::<T>(), "minItems": 1, "maxItems": ROWS });
    json!({ "anyOf": [read::<T>(), list] })
}

/// Returns the schema of records below the name of their kind, with warnings.
pub(super) fn listed<T: JsonSchema>(name: &str) -> Value {
    let warnings = json!({ "type": "array", "items": { "type": "string" } });
    let records = json!({ "type": "array", "items": written::<T>() });
    let fields = json!({ name: records, "warnings": warnings });
    json!({ "type": "object", "properties": fields, "required": [name, "warnings"] })
}

/// Returns the schema of rows, or of the one that `.single()` requests.
pub(super) fn rows<T: JsonSchema>() -> Value {
    let row = written::<T>();
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

/// Describes the routes as an `OpenAPI` document.
pub(super) fn describe(routes: &[Route]) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let methods = paths.entry(route.path).or_default();
        methods.insert(route.method.to_owned(), operation(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "memctl",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The memory that agents learn with. Every request but two needs a bearer token, \
                and reads and changes only records of its user and its domains.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    let mut good = json!({ "description": route.about });
    // An inserted row is in the answer only with `Prefer: return=representation`, as in PostgREST.
    if route.status != "201" || !route.path.starts_with("/rest/") {
        good["content"] = json!({ route.content_type: { "schema": (route.answer)() } });
    }
    responses.insert(route.status.to_owned(), good);
    let error = json!({ "description": "An error", "content": { "application/json": {} } });
    responses.insert("default".to_owned(), error);
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "responses": responses,
    });
    if !OPEN.contains(&route.path) {
        operation["security"] = json!([{ "token": [] }]);
    }
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        let content = json!({ "application/json": { "schema": body() } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut all = Vec::new();
    let names = route.path.split('/');
    let names = names.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in names {
        let schema = json!({ "type": "string", "pattern": r"^[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*$" });
        all.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    let Some(schema) = route.parameters.map(|schema| schema()) else {
        return all;
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.contains(&name.as_str());
        let mut schema = schema.clone();
        // A missing parameter is absent, never null.
        trim(&mut schema);
        let about = schema["description"].clone();
        all.push(
            json!({ "name": name, "in": "query", "required": is_required, "schema": schema,
            "description": about }),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::table::routes;
    use super::*;

    #[test]
    fn every_route_is_described_once() {
        let routes = routes();
        let described = describe(&routes);
        let ids: BTreeSet<&str> = routes.iter().map(|route| route.id).collect();
        assert_eq!(ids.len(), routes.len());
        for route in &routes {
            let operation = &described["paths"][route.path][route.method];
            assert_eq!(operation["operationId"], route.id);
            assert!(operation["responses"][route.status].is_object());
            assert_eq!(
                operation["security"].is_array(),
                !OPEN.contains(&route.path)
            );
            // A switch says everything by its path.
            let is_switch = ["disableUser", "enableUser"].contains(&route.id);
            let has_body = ["post", "patch"].contains(&route.method) && !is_switch;
            assert_eq!(operation["requestBody"].is_object(), has_body);
        }
        let text = described.to_string();
        assert!(
            !text.contains("$defs") && !text.contains("#/definitions"),
            "{text}"
        );
    }
}
