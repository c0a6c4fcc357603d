"""Checks frames against the description of the protocol, as far as that uses JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

DESCRIPTION = json.loads((Path(__file__).resolve().parents[2] / "protocol.schema.json").read_text())

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
#: Keywords that say nothing about what fits here.
IGNORED = {"description", "format", "default", "additionalProperties"}


def problems(schema, value, path=""):
    """What does not fit, as a list of texts."""
    found = []
    for keyword, rule in schema.items():
        if keyword == "$ref":
            found += problems(named(schema), value, path)
        elif keyword == "type":
            names = [rule] if isinstance(rule, str) else rule
            found += [] if any(is_a(value, name) for name in names) else [f"{path}: not {rule}"]
        elif keyword == "const":
            found += [] if value == rule else [f"{path}: not {rule!r}"]
        elif keyword in ("minimum", "maximum") and is_a(value, "number"):
            below = value < rule if keyword == "minimum" else value > rule
            found += [f"{path}: beyond {rule}"] if below else []
        elif keyword == "required" and isinstance(value, dict):
            found += [f"{path}: no {name}" for name in rule if name not in value]
        elif keyword == "properties" and isinstance(value, dict):
            for name in rule.keys() & value.keys():
                found += problems(rule[name], value[name], f"{path}/{name}")
        elif keyword == "items" and isinstance(value, list):
            for index, item in enumerate(value):
                found += problems(rule, item, f"{path}/{index}")
        elif keyword in ("anyOf", "oneOf"):
            rule = chosen(rule, value)
            tried = [problems(one, value, path) for one in rule]
            fitting = tried.count([])
            if fitting == 0 or (keyword == "oneOf" and fitting > 1):
                found += tried[0] if len(tried) == 1 else [f"{path}: fits {fitting} alternatives"]
        elif keyword == "allOf":
            for one in rule:
                if not problems(one.get("if", {}), value, path):
                    found += problems(one["then"], value, path)
        elif keyword not in (*IGNORED, "required", "properties", "items", "minimum", "maximum"):
            found.append(f"{path}: the check does not know {keyword}")
    return found


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def named(schema):
    """What a reference leads to, or the schema itself."""
    return DESCRIPTION["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def chosen(alternatives, value):
    """The alternative whose tag a value has, so that an open union does not take a broken one; otherwise all."""
    for one in alternatives:
        for name, member in named(one).get("properties", {}).items():
            if isinstance(value, dict) and "const" in member and value.get(name) == member["const"]:
                return [one]
    return alternatives
