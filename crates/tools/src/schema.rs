//! JSON Schemas in the subset that providers, code-mode declarations and our own checks share (core spec 3.2).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The keywords of the subset.
const KEYWORDS: [&str; 12] = [
    "type",
    "description",
    "title",
    "default",
    "examples",
    "oneOf",
    "enum",
    "const",
    "items",
    "properties",
    "required",
    "additionalProperties",
];

/// The schema of a type, reduced to the subset: definitions inlined, formats and bounds dropped, an optional value
/// written as its plain type.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut value = generator.into_root_schema_for::<T>().to_value();
    if let Some(root) = value.as_object_mut() {
        // The root carries the Rust type's name and doc, which mean nothing to a model.
        root.remove("title");
        root.remove("description");
    }
    reduce(&mut value);
    value
}

/// The types of the subset.
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Keywords of a schema that are outside the subset or have a value that cannot be checked, with their paths; empty for
/// a schema that can be checked.
pub fn unsupported_keywords(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_unsupported(schema, "schema", &mut found);
    found
}

fn collect_unsupported(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(map) = schema.as_object() else {
        found.push(format!("{path} must be a schema object"));
        return;
    };
    for (key, value) in map {
        match key.as_str() {
            "$schema" | "$id" => {}
            "type" if !value.is_string() => found.push(format!("{path}.type must be a single type string")),
            "type" if !value.as_str().is_some_and(|name| TYPES.contains(&name)) => {
                found.push(format!("{path}.type must be one of: {}", TYPES.join(", ")));
            }
            "properties" if !value.is_object() => found.push(format!("{path}.properties must be an object")),
            "required" if !value.as_array().is_some_and(|names| names.iter().all(Value::is_string)) => {
                found.push(format!("{path}.required must be a list of names"));
            }
            "enum" | "oneOf" if !value.is_array() => found.push(format!("{path}.{key} must be a list")),
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    collect_unsupported(inner, &format!("{path}.properties.{name}"), found);
                }
            }
            "items" => collect_unsupported(value, &format!("{path}.items"), found),
            "oneOf" => {
                for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
                    collect_unsupported(inner, &format!("{path}.oneOf[{at}]"), found);
                }
            }
            "additionalProperties" if !value.is_boolean() => {
                found.push(format!("{path}.additionalProperties must be a boolean"));
            }
            known if KEYWORDS.contains(&known) => {}
            other => found.push(format!("{path}.{other} is not a supported keyword")),
        }
    }
}

fn reduce(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        // `true` allows anything, which the subset writes as `{}`.
        *schema = Value::Object(Map::new());
        return;
    };
    unwrap_nullable(map);
    enumerate_constants(map);
    map.retain(|key, _| KEYWORDS.contains(&key.as_str()));
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    let ordered: Map<String, Value> = KEYWORDS
        .iter()
        .filter_map(|key| map.shift_remove(*key).map(|value| ((*key).to_owned(), value)))
        .collect();
    *map = ordered;
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(reduce);
    }
    if let Some(items) = map.get_mut("items") {
        reduce(items);
    }
    if let Some(branches) = map.get_mut("oneOf").and_then(Value::as_array_mut) {
        branches.iter_mut().for_each(reduce);
    }
}

/// `Option<T>` is written as `["t", "null"]` or `anyOf [T, null]`; absence is what the subset has instead.
fn unwrap_nullable(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get("type")
        && let [only] = types.iter().filter(|name| *name != "null").collect::<Vec<_>>().as_slice()
    {
        let only = (*only).clone();
        map.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(branches)) = map.shift_remove("anyOf") {
        let mut rest: Vec<Value> =
            branches.into_iter().filter(|branch| branch.get("type") != Some(&"null".into())).collect();
        if rest.len() == 1 {
            if let Some(Value::Object(inner)) = rest.pop() {
                for (key, value) in inner {
                    map.entry(key).or_insert(value);
                }
            }
        } else {
            map.insert("oneOf".to_owned(), Value::Array(rest));
        }
    }
}

/// `oneOf` of string constants (documented enum variants) is an `enum`.
fn enumerate_constants(map: &mut Map<String, Value>) {
    let Some(branches) = map.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let constants: Option<Vec<Value>> = branches
        .iter()
        .map(|branch| branch.get("const").filter(|constant| constant.is_string()).cloned())
        .collect();
    if let Some(constants) = constants {
        map.remove("oneOf");
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), Value::Array(constants));
    }
}
