//! `protocol.ts`: interfaces, unions that narrow by their tag, and maps of the methods.

use crate::NOTICE;
use crate::layout::{quoted, wrap};
use crate::shapes::{Expression, Field, Method, Protocol, Shape, Type};

const WIDTH: usize = 100;

const HEAD: &str = r#"
/**
 * Stands for every tag that is not known here. TypeScript has no type for "any other string", and with `string` in its
 * place a union would not narrow. To compare such a tag with a text of your own, write `tag as string`.
 */
export type OtherTag = "(other)";
"#;

const EVENTS: &str = r#"
/** An event whose type is known here. */
export type KnownEvent = {
  [Type in keyof EventPayloads]: EventEnvelope & { type: Type; data: EventPayloads[Type] };
}[keyof EventPayloads];

/** An event of any other type. */
export interface OtherEvent extends EventEnvelope {
  type: OtherTag;
  data: unknown;
}

/** One event of a session's log. Tell them apart by `type`. */
export type SessionEvent = KnownEvent | OtherEvent;
"#;

/// The whole module.
pub fn module(protocol: &Protocol) -> String {
    let mut out = format!("// {}\n//   {}\n{HEAD}", NOTICE[0], NOTICE[1]);
    for one in &protocol.types {
        item(&mut out, one);
    }
    interface(
        &mut out,
        "EventEnvelope",
        "What every event has beside its type and its payload.",
        &protocol.envelope,
    );
    out += "\n/** The payloads of events. */\nexport interface EventPayloads {\n";
    for (kind, data) in &protocol.events {
        out += &format!("  {}: {data};\n", quoted(kind));
    }
    out += "}\n";
    out += EVENTS;
    methods(&mut out, "Requests", "What a client asks for.", &protocol.requests);
    methods(&mut out, "ReverseRequests", "What the server asks for.", &protocol.reverse_requests);
    methods(
        &mut out,
        "Notifications",
        "What the server tells, with its parameters.",
        &protocol.notifications,
    );
    out
}

fn item(out: &mut String, one: &Type) {
    match &one.shape {
        Shape::Object(fields) => interface(out, &one.name, &one.about, fields),
        Shape::Alias(kind) => alias(out, &one.name, &one.about, &expression(kind)),
        Shape::Choice(texts) => {
            let meanings = texts.iter().map(|(text, about)| format!("- `{text}`: {about}"));
            let about = std::iter::once(one.about.clone()).chain(meanings).collect::<Vec<_>>().join("\n\n");
            let of: Vec<String> = texts.iter().map(|(text, _)| quoted(text)).collect();
            alias(out, &one.name, &about, &of.join(" | "));
        }
        Shape::Union { tag, variants, open } => {
            let mut of = variants.clone();
            if let Some(about) = open {
                let name = format!("{}Other", one.name);
                comment(out, "", about);
                *out += &format!(
                    "export interface {name} {{\n  {tag}: OtherTag;\n  [member: string]: unknown;\n}}\n"
                );
                of.push(name);
            }
            alias(out, &one.name, &one.about, &format!("\n  | {}", of.join("\n  | ")));
        }
    }
}

fn interface(out: &mut String, name: &str, about: &str, fields: &[Field]) {
    comment(out, "", about);
    *out += &format!("export interface {name} {{");
    for field in fields {
        comment(out, "  ", &field.about);
        let optional = if field.required { "" } else { "?" };
        *out += &format!("  {}{optional}: {};\n", field.name, expression(&field.kind));
    }
    *out += "}\n";
}

fn alias(out: &mut String, name: &str, about: &str, value: &str) {
    comment(out, "", about);
    let space = if value.starts_with('\n') { "" } else { " " };
    *out += &format!("export type {name} ={space}{value};\n");
}

/// A documentation comment after an empty line, or within an interface after a line end.
fn comment(out: &mut String, indent: &str, about: &str) {
    *out += "\n";
    let lines: Vec<String> = wrap(about, WIDTH).into_iter().filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => {}
        [only] => *out += &format!("{indent}/** {only} */\n"),
        lines => {
            *out += &format!("{indent}/**\n");
            lines.iter().for_each(|line| *out += &format!("{indent} * {line}\n"));
            *out += &format!("{indent} */\n");
        }
    }
}

fn methods(out: &mut String, name: &str, about: &str, list: &[Method]) {
    comment(out, "", about);
    *out += &format!("export interface {name} {{");
    for method in list {
        comment(out, "  ", &method.about);
        let params = &method.params;
        let value = match &method.result {
            Some(result) => format!("{{ params: {params}; result: {result} }}"),
            None => params.clone(),
        };
        *out += &format!("  {}: {value};\n", quoted(&method.name));
    }
    *out += "}\n";
}

fn expression(kind: &Expression) -> String {
    match kind {
        Expression::Text => "string".to_owned(),
        Expression::Integer | Expression::Number => "number".to_owned(),
        Expression::Boolean => "boolean".to_owned(),
        Expression::Null => "null".to_owned(),
        Expression::Any => "unknown".to_owned(),
        Expression::Object => "Record<string, unknown>".to_owned(),
        Expression::Literal(text) => quoted(text),
        Expression::Named(name) => name.clone(),
        Expression::List(of) => match of.as_ref() {
            Expression::Either(_) => format!("({})[]", expression(of)),
            of => format!("{}[]", expression(of)),
        },
        Expression::Either(of) => of.iter().map(expression).collect::<Vec<_>>().join(" | "),
    }
}
