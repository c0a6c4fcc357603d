//! YAML as far as patch files need it: one document of plain values, where each of them stands, and nothing that has to
//! be evaluated.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

/// Deepest nesting.
const MAX_DEPTH: usize = 32;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// 1-based.
    pub line: usize,
    /// What it is.
    pub value: Value,
}

/// A value of YAML's core schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in order; no key is there twice.
    Map(Vec<(String, Node)>),
}

/// What is wrong with a text.
#[derive(Debug, PartialEq, Eq)]
pub struct YamlError {
    /// 1-based.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
    /// Whether it is an expression that only a JavaScript program could evaluate.
    pub expression: bool,
}

/// Reads a text of one document; `None` when it holds none. Aliases may make it no longer than `max_content`, counted
/// in values and bytes of text.
///
/// # Errors
/// When the text is not YAML, or more than plain values.
pub fn read(text: &str, max_content: usize) -> Result<Option<Node>, YamlError> {
    let parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = Reader { parser, anchors: HashMap::new(), left: max_content, line: 1 };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            _ if root.is_some() => return Err(error(&span, "there is more than one document")),
            event => root = Some(reader.node(event, &span, 0)?),
        }
    }
    Ok(root.filter(|node| node.value != Value::Null))
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Values with an anchor, and what they count.
    anchors: HashMap<usize, (Node, usize)>,
    /// What may still come.
    left: usize,
    /// The last line that was read.
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, YamlError> {
        let next = self.parser.next().transpose().map_err(|error| scan_error(&error))?;
        if let Some((_, span)) = &next {
            self.line = span.start.line();
        }
        Ok(next)
    }

    /// The next event inside a collection.
    fn inner(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        let line = self.line;
        self.next()?.ok_or_else(|| YamlError {
            line,
            message: "the text ends within a value".to_owned(),
            expression: false,
        })
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, YamlError> {
        if depth > MAX_DEPTH {
            return Err(error(span, &format!("values stand in each other more than {MAX_DEPTH} deep")));
        }
        let before = self.left;
        self.spend(1, span)?;
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let (node, count) = known.ok_or_else(|| error(span, "an alias names what it stands in"))?;
                self.spend(count, span)?;
                (node.value, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(text.len(), span)?;
                (scalar(&text, style, tag.as_deref(), span)?, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), &["seq"], span)?;
                (self.list(depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), &["map"], span)?;
                (self.map(depth)?, anchor)
            }
            _ => return Err(error(span, "there is no value")),
        };
        let node = Node { line: span.start.line(), value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), before - self.left));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.inner()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut members: Vec<(String, Node)> = Vec::new();
        let mut keys = HashSet::new();
        loop {
            let (event, span) = match self.inner()? {
                (Event::MappingEnd, _) => return Ok(Value::Map(members)),
                key => key,
            };
            let key = match event {
                Event::Scalar(text, _, 0, None) => text.into_owned(),
                _ => return Err(error(&span, "a key must be plain text")),
            };
            self.spend(key.len(), &span)?;
            if !keys.insert(key.clone()) {
                return Err(error(&span, &format!("the key \"{key}\" is there twice")));
            }
            let (event, value_span) = self.inner()?;
            let mut value = self.node(event, &value_span, depth + 1)?;
            value.line = span.start.line();
            members.push((key, value));
        }
    }

    fn spend(&mut self, count: usize, span: &Span) -> Result<(), YamlError> {
        self.left = self
            .left
            .checked_sub(count)
            .ok_or_else(|| error(span, "with its aliases written out it is too long"))?;
        Ok(())
    }
}

fn error(span: &Span, message: &str) -> YamlError {
    YamlError { line: span.start.line(), message: message.to_owned(), expression: false }
}

fn scan_error(error: &ScanError) -> YamlError {
    YamlError { line: error.marker().line(), message: error.info().to_owned(), expression: false }
}

/// A tag must be one of the core schema's.
fn refuse_tag(tag: Option<&Tag>, known: &[&str], span: &Span) -> Result<(), YamlError> {
    let Some(tag) = tag else {
        return Ok(());
    };
    if tag.is_yaml_core_schema() && known.contains(&tag.suffix.as_str()) {
        return Ok(());
    }
    let name = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    let expression = tag.suffix == "js";
    let message = if expression {
        format!("{name} expressions are not evaluated; write the value itself")
    } else {
        format!("the tag {name} is not understood")
    };
    Err(YamlError { line: span.start.line(), message, expression })
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Result<Value, YamlError> {
    refuse_tag(tag, &["str", "int", "float", "bool", "null"], span)?;
    if style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str") {
        return Ok(Value::Text(text.to_owned()));
    }
    Ok(plain(text))
}

/// What a text without quotes stands for.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let radix = |prefix: &str, radix| {
        text.strip_prefix(prefix).and_then(|digits| i64::from_str_radix(digits, radix).ok())
    };
    if let Some(number) = text.parse().ok().or_else(|| radix("0x", 16)).or_else(|| radix("0o", 8)) {
        return Value::Integer(number);
    }
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse() {
        Ok(number) if is_number => Value::Float(number),
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: usize = 10_000;

    fn members(text: &str) -> Vec<(String, Value)> {
        match read(text, ENOUGH).expect("YAML").expect("a value").value {
            Value::Map(members) => members.into_iter().map(|(key, node)| (key, node.value)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn plain_values_have_the_types_of_the_core_schema() {
        let text = "a: 1\nb: -0.5\nc: yes\nd: True\ne: ~\nf: '1'\ng: !!str 2\nh: 0x10\ni: 1e3\nj: infinity\nk: 1-2\n";
        let values: Vec<Value> = members(text).into_iter().map(|(_, value)| value).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let wanted = [
            Value::Integer(1),
            Value::Float(-0.5),
            text("yes"),
            Value::Bool(true),
            Value::Null,
            text("1"),
            text("2"),
            Value::Integer(16),
            Value::Float(1000.0),
            text("infinity"),
            text("1-2"),
        ];
        assert_eq!(values, wanted);
    }

    #[test]
    fn lines_are_told_and_nothing_is_none() {
        let root = read("# c\n- a: 1\n- b:\n    c\n", ENOUGH).expect("YAML").expect("a value");
        let Value::List(items) = root.value else { panic!("a list") };
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [2, 3]);
        for text in ["", "# only a comment\n", "---\n", "~\n", "\u{feff}"] {
            assert_eq!(read(text, ENOUGH), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn aliases_count_as_what_they_stand_for() {
        assert_eq!(members("a: &x [1, 2]\nb: *x\n")[1].1, members("b: [1, 2]\n")[0].1);
        let mut bomb = "- &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..30 {
            let below = format!("*a{}", level - 1);
            bomb.push_str(&format!("- &a{level} [{}]\n", [below.as_str(); 8].join(", ")));
        }
        let error = read(&bomb, 1_000_000).expect_err("too long");
        assert_eq!(error.message, "with its aliases written out it is too long");
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(read(&deep, ENOUGH).is_err());
        assert!(read(&"[".repeat(100_000), ENOUGH).is_err());
        assert!(read("a: &x [*x]\n", ENOUGH).is_err());
    }

    #[test]
    fn what_is_no_plain_value_is_refused() {
        let said = |text: &str| {
            let error = read(text, ENOUGH).expect_err(text);
            format!("{}: {}", error.line, error.message)
        };
        let texts = [
            "a: 1\nb: !!js process.cwd()\n",
            "a: !js x\n",
            "a: !!js [x]\n",
            "a: !custom x\n",
            "a: !!binary x\n",
            "a: 1\na: 2\n",
            "? [x]\n: 1\n",
            "a: 1\n---\nb: 2\n",
            "a: *x\n",
            "- [",
            "a: b: c\n",
        ];
        let all: Vec<String> = texts.iter().map(|text| format!("{text:?}: {}", said(text))).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        "a: 1\nb: !!js process.cwd()\n": 2: !!js expressions are not evaluated; write the value itself
        "a: !js x\n": 1: !js expressions are not evaluated; write the value itself
        "a: !!js [x]\n": 1: !!js expressions are not evaluated; write the value itself
        "a: !custom x\n": 1: the tag !custom is not understood
        "a: !!binary x\n": 1: the tag !!binary is not understood
        "a: 1\na: 2\n": 2: the key "a" is there twice
        "? [x]\n: 1\n": 1: a key must be plain text
        "a: 1\n---\nb: 2\n": 3: there is more than one document
        "a: *x\n": 1: while parsing node, found unknown anchor
        "- [": 2: while parsing a node, did not find expected node content
        "a: b: c\n": 1: mapping values are not allowed in this context
        "#);
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_surprise(text in "([-?:,!&*|>#{}%@~ \\n\"'\\[\\]]|a: |- |!!js|&a |\\*a|[a-z0-9.])*") {
            // It may be YAML or not; it may not panic, nor come to more than was allowed.
            let _ = read(&text, 50);
        }
    }
}
