//! `protocol.py`: typed dictionaries that need nothing but Python 3.10.

use crate::NOTICE;
use crate::layout::{pascal, quoted, wrap};
use crate::shapes::{Expression, Field, Method, Protocol, Shape, Type};

const WIDTH: usize = 100;

const HEAD: &str = r#"
"""The protocol's types.

Objects are plain dictionaries. They may have members that are not listed here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired

#: Stands for every tag that is not known here: with `str` in its place a union would not narrow.
OtherTag = Literal["(other)"]
"#;

/// The whole module.
pub fn module(protocol: &Protocol) -> String {
    let mut out = format!("# {}\n#   {}\n{HEAD}", NOTICE[0], NOTICE[1]);
    // Aliases are values, so they come after what they are made of; classes can be used before they are there.
    let (classes, aliases): (Vec<&Type>, Vec<&Type>) =
        protocol.types.iter().partition(|one| matches!(one.shape, Shape::Object(_)));
    for one in classes {
        if let Shape::Object(fields) = &one.shape {
            class(&mut out, &one.name, "TypedDict", &one.about, fields);
        }
    }
    for one in &aliases {
        if let Shape::Union { tag, open: Some(about), .. } = &one.shape {
            class(
                &mut out,
                &other_name(&one.name),
                "TypedDict",
                about,
                &[bare(tag, Expression::Named("OtherTag".into()))],
            );
        }
    }
    out += "\n";
    for one in &aliases {
        alias(&mut out, one);
    }
    events(&mut out, protocol);
    let lists = [
        ("Request", "What a client asks for", &protocol.requests),
        ("ReverseRequest", "What the server asks for", &protocol.reverse_requests),
        ("Notification", "What the server tells", &protocol.notifications),
    ];
    for (name, about, list) in lists {
        methods(&mut out, name, about, list);
    }
    out
}

fn class(out: &mut String, name: &str, base: &str, about: &str, fields: &[Field]) {
    *out += &format!("\n\nclass {name}({base}):\n");
    docstring(out, about);
    for field in fields {
        assert!(
            field.name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'),
            "{}",
            field.name
        );
        comment(out, "    ", &field.about);
        let kind = expression(&field.kind);
        let kind = if field.required { kind } else { format!("NotRequired[{kind}]") };
        *out += &format!("    {}: {kind}\n", field.name);
    }
}

fn docstring(out: &mut String, about: &str) {
    let mut lines = wrap(about, WIDTH);
    let more = lines.split_off(1);
    *out += &format!("    \"\"\"{}", lines.concat());
    for line in &more {
        *out += "\n";
        if !line.is_empty() {
            *out += &format!("    {line}");
        }
    }
    *out += if more.is_empty() { "\"\"\"\n" } else { "\n    \"\"\"\n" };
    *out += "\n";
}

fn comment(out: &mut String, indent: &str, about: &str) {
    for line in wrap(about, WIDTH).iter().filter(|line| !line.is_empty()) {
        *out += &format!("{indent}#: {line}\n");
    }
}

fn alias(out: &mut String, one: &Type) {
    *out += "\n";
    comment(out, "", &one.about);
    let value = match &one.shape {
        Shape::Object(_) => return,
        Shape::Alias(kind) => expression(kind),
        Shape::Choice(texts) => {
            for (text, about) in texts {
                comment(out, "", &format!("- {}: {about}", quoted(text)));
            }
            format!("Literal[{}]", texts.iter().map(|(text, _)| quoted(text)).collect::<Vec<_>>().join(", "))
        }
        Shape::Union { tag, variants, open } => {
            comment(out, "", &format!("Tell them apart by {}.", quoted(tag)));
            let other = open.as_ref().map(|_| other_name(&one.name));
            let of: Vec<String> = variants.iter().chain(&other).map(|name| quoted(name)).collect();
            union(&of)
        }
    };
    *out += &format!("{} = {value}\n", one.name);
}

fn union(of: &[String]) -> String {
    format!("Union[\n    {},\n]", of.join(",\n    "))
}

fn events(out: &mut String, protocol: &Protocol) {
    class(
        out,
        "EventEnvelope",
        "TypedDict",
        "What every event has beside its type and its payload.",
        &protocol.envelope,
    );
    for (kind, data) in &protocol.events {
        let fields =
            [bare("type", Expression::Literal(kind.clone())), bare("data", Expression::Named(data.clone()))];
        class(out, &event_name(kind), "EventEnvelope", &format!("An event `{kind}`."), &fields);
    }
    let fields = [bare("type", Expression::Named("OtherTag".into())), bare("data", Expression::Any)];
    class(out, &other_name("SessionEvent"), "EventEnvelope", "An event of any other type.", &fields);
    let known = protocol.events.iter().map(|(kind, _)| event_name(kind));
    let of: Vec<String> = known.chain([other_name("SessionEvent")]).map(|name| quoted(&name)).collect();
    *out += "\n\n";
    comment(out, "", "One event of a session's log. Tell them apart by \"type\".");
    *out += &format!("SessionEvent = {}\n", union(&of));
}

/// A member that needs no words.
fn bare(name: &str, kind: Expression) -> Field {
    Field { name: name.to_owned(), about: String::new(), required: true, kind }
}

/// The alternative that stands for whatever a later version adds.
fn other_name(union: &str) -> String {
    format!("{union}Other")
}

/// Named like the alternatives of every other union.
fn event_name(kind: &str) -> String {
    format!("SessionEvent{}", pascal(kind))
}

fn methods(out: &mut String, name: &str, about: &str, list: &[Method]) {
    *out += "\n";
    comment(out, "", &format!("{about}:"));
    for method in list {
        let result = method.result.as_ref().map(|result| format!(" -> {result}")).unwrap_or_default();
        comment(
            out,
            "",
            &format!("- {} ({}{result}): {}", quoted(&method.name), method.params, method.about),
        );
    }
    let names: Vec<String> = list.iter().map(|method| quoted(&method.name)).collect();
    *out += &format!("{name} = Literal[\n    {},\n]\n", names.join(",\n    "));
}

fn expression(kind: &Expression) -> String {
    match kind {
        Expression::Text => "str".to_owned(),
        Expression::Integer => "int".to_owned(),
        Expression::Number => "float".to_owned(),
        Expression::Boolean => "bool".to_owned(),
        Expression::Null => "None".to_owned(),
        Expression::Any => "Any".to_owned(),
        Expression::Object => "Dict[str, Any]".to_owned(),
        Expression::Literal(text) => format!("Literal[{}]", quoted(text)),
        Expression::Named(name) => name.clone(),
        Expression::List(of) => format!("List[{}]", expression(of)),
        Expression::Either(of) => {
            format!("Union[{}]", of.iter().map(expression).collect::<Vec<_>>().join(", "))
        }
    }
}
