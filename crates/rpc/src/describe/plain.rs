//! Makes derived schemas plainer, so that whoever generates code from them has few shapes to know.

use serde_json::{Map, Value, json};

const REFERENCE: &str = "#/$defs/";

/// Rewrites all definitions.
pub fn make_plain(definitions: &mut Map<String, Value>) {
    move_tags(definitions);
    for schema in definitions.values_mut() {
        walk(schema);
    }
}

/// Gives each object that is an alternative of a tagged union its tag. Derived, the tag stands beside the reference.
fn move_tags(definitions: &mut Map<String, Value>) {
    let mut tags: Vec<(String, Map<String, Value>)> = Vec::new();
    for schema in definitions.values_mut() {
        for variant in variants(schema) {
            let Some(name) = variant.get("$ref").and_then(referenced) else { continue };
            let Some(Value::Object(tag)) = variant.get_mut("properties").map(Value::take) else { continue };
            tags.push((name, tag));
            if let Some(variant) = variant.as_object_mut() {
                ["type", "properties", "required"].iter().for_each(|key| _ = variant.remove(*key));
            }
        }
    }
    for (name, mut tag) in tags {
        let Some(schema) = definitions.get_mut(&name) else { continue };
        let mut required: Vec<Value> = tag.keys().cloned().map(Value::from).collect();
        if let Some(Value::Array(rest)) = schema.get_mut("required").map(Value::take) {
            required.extend(rest);
        }
        if let Some(Value::Object(rest)) = schema.get_mut("properties").map(Value::take) {
            tag.extend(rest);
        }
        schema["properties"] = tag.into();
        schema["required"] = required.into();
    }
}

fn referenced(reference: &Value) -> Option<String> {
    reference.as_str()?.strip_prefix(REFERENCE).map(str::to_owned)
}

/// The alternatives of a union.
fn variants(schema: &mut Value) -> impl Iterator<Item = &mut Value> {
    let unions = schema.as_object_mut().into_iter().flat_map(|schema| schema.iter_mut());
    unions
        .filter(|(key, _)| matches!(key.as_str(), "anyOf" | "oneOf"))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
}

fn walk(schema: &mut Value) {
    if let Some(description) = schema.get_mut("description") {
        *description = prose(description.as_str().unwrap_or_default()).into();
    }
    drop_nulls(schema);
    use_wire_names(schema);
    for variant in variants(schema) {
        // What a later version adds is an object like the rest.
        if variant.as_object().is_some_and(|variant| variant.keys().eq(["description"])) {
            variant["type"] = json!("object");
        }
        walk(variant);
    }
    if let Some(items) = schema.get_mut("items") {
        walk(items);
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(walk);
    }
}

/// Documentation without the marks of rustdoc, a line a paragraph.
fn prose(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n").replace("[`", "`").replace("`]", "`")
}

/// A member that may be missing is missing rather than null.
fn drop_nulls(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties {
        if required.as_array().is_some_and(|required| required.iter().any(|one| one == name)) {
            continue;
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|one| one != "null");
            if let [only] = types.as_slice() {
                property["type"] = only.clone();
            }
        }
        drop_null_alternative(property);
    }
}

fn drop_null_alternative(property: &mut Value) {
    let Some(Value::Array(alternatives)) = property.get_mut("anyOf") else { return };
    alternatives.retain(|one| one["type"] != "null");
    let [Value::Object(only)] = alternatives.as_slice() else { return };
    let only = only.clone();
    if let Some(property) = property.as_object_mut() {
        property.remove("anyOf");
        let description = property.remove("description");
        property.extend(only);
        property.extend(description.map(|text| ("description".to_owned(), text)));
    }
}

/// Calls members by their names on the wire where the documentation has those of Rust.
fn use_wire_names(schema: &mut Value) {
    let names: Vec<(String, String)> = match schema.get("properties") {
        Some(Value::Object(properties)) => {
            properties.keys().map(|name| (format!("`{}`", snake(name)), format!("`{name}`"))).collect()
        }
        _ => return,
    };
    let rename = |schema: &mut Value| {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = names.iter().fold(std::mem::take(text), |text, (rust, wire)| text.replace(rust, wire));
        }
    };
    rename(schema);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(rename);
    }
}

fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}
