//! Checking and converting arguments (core spec 3.3).

use serde_json::{Map, Number, Value};

use crate::outcome::ToolError;

/// Arguments after conversion, with what is wrong with them.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentCheck {
    /// The arguments with every value converted that has only one reading.
    pub arguments: Value,
    /// What is wrong, in schema order; empty when nothing is.
    pub violations: Vec<String>,
}

impl ArgumentCheck {
    /// The error of a check that found something.
    pub fn error(&self) -> Option<ToolError> {
        (!self.violations.is_empty()).then(|| {
            let message = format!("invalid arguments: {}", self.violations.join("; "));
            ToolError::typed("ToolArgsError", "INVALID_ARGS", message)
        })
    }
}

/// The value of a raw argument text: empty is `{}`, and what is not JSON stays a string.
pub fn parse_arguments(raw: &str) -> Value {
    if raw.is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned()))
}

/// Converts where the schema allows only one reading, then checks.
///
/// `"10"` becomes 10 for a number, `"true"` becomes true for a boolean, a list or record written as a string becomes
/// the list or record, and `null` for an optional property that takes no null and is no string is left out. Strings
/// are never made from other values.
pub fn check_arguments(schema: &Value, arguments: Value) -> ArgumentCheck {
    let arguments = convert(schema, arguments);
    let mut violations = Vec::new();
    check(schema, &arguments, "", &mut violations);
    ArgumentCheck { arguments, violations }
}

/// What keeps a value from fitting a schema of the subset, nothing converted; empty when it fits.
pub fn check_value(schema: &Value, value: &Value) -> Vec<String> {
    let mut violations = Vec::new();
    check(schema, value, "", &mut violations);
    violations
}

fn schema_type(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

fn convert(schema: &Value, value: Value) -> Value {
    let Some(wanted) = schema_type(schema) else {
        return value;
    };
    let value = match value {
        Value::String(text) if wanted != "string" => reread(wanted, text),
        other => other,
    };
    match value {
        Value::Number(number) if wanted == "integer" => Value::Number(whole(number)),
        Value::Object(map) if wanted == "object" => Value::Object(convert_members(schema, map)),
        Value::Array(items) if wanted == "array" => match schema.get("items") {
            Some(inner) => Value::Array(items.into_iter().map(|item| convert(inner, item)).collect()),
            None => Value::Array(items),
        },
        other => other,
    }
}

fn convert_members(schema: &Value, map: Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = required_names(schema);
    let mut converted = Map::new();
    for (key, value) in map {
        let Some(inner) = properties.and_then(|properties| properties.get(&key)) else {
            converted.insert(key, value);
            continue;
        };
        let optional = !required.contains(&key.as_str());
        let takes_no_null = schema_type(inner).is_some_and(|kind| kind != "null" && kind != "string");
        if value.is_null() && optional && takes_no_null {
            continue;
        }
        converted.insert(key, convert(inner, value));
    }
    converted
}

/// A string read as the wanted type, or the string itself when it does not read as one.
fn reread(wanted: &str, text: String) -> Value {
    let fits = |value: &Value| match wanted {
        "number" => value.is_number(),
        "integer" => has_type("integer", value),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value) if fits(&value) => value,
        _ => Value::String(text),
    }
}

/// `10.0` as `10`, when nothing is lost.
fn whole(number: Number) -> Number {
    /// From here on not every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            Number::from(float as i64)
        }
        _ => number,
    }
}

fn required_names(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn check(schema: &Value, value: &Value, path: &str, out: &mut Vec<String>) {
    let name = if path.is_empty() { "arguments" } else { path };
    if let Some(branches) = schema.get("oneOf").and_then(Value::as_array) {
        let matched = branches
            .iter()
            .filter(|branch| {
                let mut inner = Vec::new();
                check(branch, value, path, &mut inner);
                inner.is_empty()
            })
            .count();
        if matched != 1 {
            out.push(format!("\"{name}\" must match exactly one oneOf branch (matched {matched})"));
            return;
        }
    }
    // Without a type the other keywords still hold for the values they are about.
    if let Some(wanted) = schema_type(schema)
        && !has_type(wanted, value)
    {
        out.push(format!("\"{name}\" must be {} (got {})", wanted_text(wanted), got_text(value)));
        return;
    }
    check_choice(schema, value, name, out);
    match value {
        Value::Object(map) => check_object(schema, map, path, out),
        Value::Array(items) => {
            if let Some(inner) = schema.get("items") {
                for (at, item) in items.iter().enumerate() {
                    check(inner, item, &format!("{name}[{at}]"), out);
                }
            }
        }
        _ => {}
    }
}

fn check_choice(schema: &Value, value: &Value, name: &str, out: &mut Vec<String>) {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let list = Value::Array(choices.clone());
        out.push(format!("\"{name}\" must be one of {list} (got {})", got_text(value)));
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        out.push(format!("\"{name}\" must be {constant} (got {})", got_text(value)));
    }
}

fn check_object(schema: &Value, map: &Map<String, Value>, path: &str, out: &mut Vec<String>) {
    let child = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for key in required_names(schema) {
        if !map.contains_key(key) {
            out.push(format!("missing required property \"{}\"", child(key)));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, inner) in properties.into_iter().flatten() {
        if let Some(value) = map.get(key) {
            check(inner, value, &child(key), out);
        }
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        for key in map.keys().filter(|key| properties.is_none_or(|known| !known.contains_key(*key))) {
            out.push(format!("\"{}\" is not a declared property (additionalProperties: false)", child(key)));
        }
    }
}

fn has_type(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn wanted_text(wanted: &str) -> &str {
    match wanted {
        "string" => "a string",
        "number" => "a number",
        "integer" => "an integer",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// Longest piece of a value that an error repeats, in characters.
const SHOWN_VALUE_CHARS: usize = 40;

fn got_text(value: &Value) -> String {
    let shown = |text: &str| {
        let cut: String = text.chars().take(SHOWN_VALUE_CHARS).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", shown(&Value::String(text.clone()).to_string())),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
