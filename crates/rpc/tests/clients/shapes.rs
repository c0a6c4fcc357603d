//! The description as the few shapes that types in other languages are made of.

use serde_json::{Map, Value};

use crate::layout::pascal;

/// The whole protocol.
pub struct Protocol {
    pub types: Vec<Type>,
    /// Members of every event's envelope but `type` and `data`.
    pub envelope: Vec<Field>,
    pub requests: Vec<Method>,
    pub reverse_requests: Vec<Method>,
    pub notifications: Vec<Method>,
    /// Event types with the names of their payloads.
    pub events: Vec<(String, String)>,
}

/// A method with the names of its types.
pub struct Method {
    pub name: String,
    pub about: String,
    pub params: String,
    /// None for a notification.
    pub result: Option<String>,
}

/// A type with a name.
pub struct Type {
    pub name: String,
    pub about: String,
    pub shape: Shape,
}

/// What a type is.
pub enum Shape {
    Object(Vec<Field>),
    /// One of these texts, each with what it means.
    Choice(Vec<(String, String)>),
    Union {
        /// The member that tells alternatives apart.
        tag: String,
        /// Names of types.
        variants: Vec<String>,
        /// What other objects there can be, when there can.
        open: Option<String>,
    },
    Alias(Expression),
}

/// A member of an object.
pub struct Field {
    pub name: String,
    pub about: String,
    pub required: bool,
    pub kind: Expression,
}

/// A type without a name.
pub enum Expression {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    Any,
    Object,
    Literal(String),
    Named(String),
    List(Box<Self>),
    Either(Vec<Self>),
}

const EVENT: &str = "SessionEvent";

impl Protocol {
    /// Reads a description. Panics where it has a shape that no type is made of yet.
    pub fn read(description: &Value) -> Self {
        let definitions = members(&description["$defs"]);
        let mut types = Vec::new();
        for (name, schema) in definitions.iter().filter(|(name, _)| *name != EVENT) {
            read_type(name, schema, definitions, &mut types);
        }
        let mut envelope = fields(&definitions[EVENT]);
        envelope.retain(|field| !["type", "data"].contains(&field.name.as_str()));
        let events = members(&description["events"]);
        Self {
            types,
            envelope,
            requests: methods(&description["requests"]),
            reverse_requests: methods(&description["reverseRequests"]),
            notifications: methods(&description["notifications"]),
            events: events.iter().map(|(kind, data)| (kind.clone(), reference(data))).collect(),
        }
    }
}

fn methods(list: &Value) -> Vec<Method> {
    let method = |(name, entry): (&String, &Value)| Method {
        name: name.clone(),
        about: about(entry),
        params: reference(&entry["params"]),
        result: entry.get("result").map(reference),
    };
    members(list).iter().map(method).collect()
}

fn read_type(name: &str, schema: &Value, definitions: &Map<String, Value>, types: &mut Vec<Type>) {
    let shape = match alternatives(schema) {
        Some(texts) if texts.iter().all(|one| one.get("const").is_some()) => {
            Shape::Choice(texts.iter().map(|one| (text(&one["const"]), about(one))).collect())
        }
        Some(objects) => union(name, objects, definitions, types),
        None if schema["type"] == "object" => Shape::Object(fields(schema)),
        None => Shape::Alias(expression(schema)),
    };
    types.push(Type { name: name.to_owned(), about: about(schema), shape });
}

/// A union; its alternatives that have no name get one.
fn union(name: &str, objects: &[Value], definitions: &Map<String, Value>, types: &mut Vec<Type>) -> Shape {
    let (mut tag, mut variants, mut open) = (None, Vec::new(), None);
    for object in objects {
        let named = object.get("$ref").map(|_| reference(object));
        let schema = named.as_ref().map_or(object, |name| &definitions[name]);
        let Some((key, value)) = tag_of(schema) else {
            open = Some(about(object));
            continue;
        };
        assert!(tag.is_none_or(|tag| tag == key), "{name} has two tags");
        tag = Some(key);
        variants.push(named.unwrap_or_else(|| {
            let variant = format!("{name}{}", pascal(value));
            assert!(!definitions.contains_key(&variant), "{variant} is two types");
            let shape = Shape::Object(fields(schema));
            types.push(Type { name: variant.clone(), about: about(schema), shape });
            variant
        }));
    }
    let tag = tag.unwrap_or_else(|| panic!("{name} has no tag")).to_owned();
    Shape::Union { tag, variants, open }
}

fn tag_of(schema: &Value) -> Option<(&str, &str)> {
    let properties = schema.get("properties")?.as_object()?;
    properties.iter().find_map(|(key, property)| Some((key.as_str(), property.get("const")?.as_str()?)))
}

fn alternatives(schema: &Value) -> Option<&[Value]> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array).map(Vec::as_slice)
}

fn fields(schema: &Value) -> Vec<Field> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, property): (&String, &Value)| Field {
        name: name.clone(),
        about: about(property),
        required: required.iter().any(|one| one == name),
        kind: expression(property),
    };
    properties.iter().map(field).collect()
}

fn expression(schema: &Value) -> Expression {
    if schema.get("$ref").is_some() {
        return Expression::Named(reference(schema));
    }
    if let Some(literal) = schema.get("const") {
        return Expression::Literal(text(literal));
    }
    if let Some(list) = alternatives(schema) {
        return Expression::Either(list.iter().map(expression).collect());
    }
    match schema.get("type") {
        None => Expression::Any,
        Some(Value::Array(types)) => {
            Expression::Either(types.iter().map(|one| primitive(one, schema)).collect())
        }
        Some(one) => primitive(one, schema),
    }
}

fn primitive(name: &Value, schema: &Value) -> Expression {
    match text(name).as_str() {
        "string" => Expression::Text,
        "integer" => Expression::Integer,
        "number" => Expression::Number,
        "boolean" => Expression::Boolean,
        "null" => Expression::Null,
        "object" if schema.get("properties").is_none() => Expression::Object,
        "array" => Expression::List(Box::new(expression(&schema["items"]))),
        _ => panic!("no type is made of {schema}"),
    }
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("not an object: {value}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

fn about(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}

/// The name of the type that is referred to.
fn reference(schema: &Value) -> String {
    let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    name.unwrap_or_else(|| panic!("not a reference: {schema}")).to_owned()
}
