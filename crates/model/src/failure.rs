//! What went wrong, in the server's words: statuses and error objects become [`Failure`]s.
//!
//! What must hold:
//! - A message is safe to print (no control characters) and bounded.
//! - A failure says what to do next where that is known, and never carries a key (see [`redact`]).

use jiff::Timestamp;
use lorimer_protocol::Failure;
use serde_json::Value;

/// Longest message of a failure, in characters.
pub(crate) const MAX_MESSAGE_CHARS: usize = 1000;
/// How much of it may be the server's words, in characters, so that the advice after them is never cut off.
const MAX_SAID_CHARS: usize = 600;
/// How much of a body that is no JSON is shown, in characters.
pub(crate) const MAX_EXCERPT_CHARS: usize = 120;
/// Shorter keys are no secrets, and blanking them would only garble words.
const MIN_SECRET_BYTES: usize = 4;
const MS_PER_SECOND: u64 = 1000;
/// Longest request id that is kept, in characters.
const MAX_REQUEST_ID_CHARS: usize = 200;

/// An answer with a status other than 200, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorAnswer<'a> {
    pub status: u16,
    pub body: &'a str,
    pub retry_after: Option<&'a str>,
    pub request_id: Option<&'a str>,
    pub location: Option<&'a str>,
    /// What people call the protocol that was spoken; `None` when the answer came from no server.
    pub protocol: Option<&'a str>,
}

/// What a failure's advice may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice<'a> {
    /// The address that was asked, safe to show.
    pub url: &'a str,
    /// The variable that holds the key.
    pub key_variable: Option<&'a str>,
}

/// The failure of an answer with an error status. `now` is what a `Retry-After` date is counted from.
pub(crate) fn from_answer(answer: &ErrorAnswer<'_>, advice: Advice<'_>, now: Timestamp) -> Failure {
    let words = server_words(answer.body);
    let code = status_code(answer.status, answer.body);
    let said = safe_text(&words.unwrap_or_else(|| generic_words(answer.status)), MAX_SAID_CHARS);
    let wait_ms = answer.retry_after.and_then(|value| retry_after_ms(value, now));
    let message = match advice_for(answer, &code, advice, wait_ms) {
        Some(next) => format!("{} ({next})", said.trim_end_matches('.')),
        None => said,
    };
    Failure {
        message: safe_text(&message, MAX_MESSAGE_CHARS),
        code,
        status: (100..600).contains(&answer.status).then_some(answer.status),
        provider_retry_after_ms: wait_ms,
        request_id: answer
            .request_id
            .map(|id| safe_text(id, MAX_REQUEST_ID_CHARS))
            .filter(|id| !id.is_empty()),
    }
}

/// The failure of an error object inside a stream that began with status 200.
///
/// `error` is the value of `error`, or the whole frame when that itself is the error. What cannot be classified is
/// `SERVER`: the request was accepted, so the server gave up on it.
pub(crate) fn from_error_object(error: &Value) -> Failure {
    let message = message_of(error).unwrap_or_else(|| error.to_string());
    let field = |name: &str| error.get(name).map(plain_text).unwrap_or_default();
    let (kind, code) = (field("type"), field("code"));
    let status = [&code, &field("status")].iter().find_map(|text| text.parse::<u16>().ok());
    let status = status.filter(|status| (400..600).contains(status));
    let all = format!("{code} {kind} {message}").to_lowercase();
    let failure_code = match status {
        Some(status) => status_code(status, &all),
        None => word_code(&all).to_owned(),
    };
    Failure { status, ..Failure::new(failure_code, safe_text(&message, MAX_MESSAGE_CHARS)) }
}

/// The failure of a body or frame that is not what it should be, with its first characters.
pub(crate) fn malformed(what: &str, text: &str) -> Failure {
    let excerpt = safe_text(text, MAX_EXCERPT_CHARS);
    Failure::new("MALFORMED_RESPONSE", format!("{what}: {excerpt}"))
}

/// The failure of an answer in a protocol that was not spoken.
pub(crate) fn other_protocol(answered: &str, expected: &str) -> Failure {
    let message = format!(
        "the server answers in {answered}, but {expected} was expected: correct the base URL, or the protocol that is \
         configured for this provider"
    );
    Failure::new("MALFORMED_RESPONSE", message)
}

/// The error code of a status, also by the words of its body.
pub(crate) fn status_code(status: u16, body: &str) -> String {
    let words = body.to_lowercase();
    let code = match status {
        401 | 403 => "AUTH",
        413 => "INVALID_REQUEST",
        402 => "QUOTA",
        _ if says_quota(&words) => "QUOTA",
        429 => "RATE_LIMIT",
        400 if says_context_overflow(&words) => "CONTEXT_WINDOW_EXCEEDED",
        400 => "INVALID_REQUEST",
        500.. => "SERVER",
        other => return format!("HTTP_{other}"),
    };
    code.to_owned()
}

fn word_code(words: &str) -> &'static str {
    let has = |needles: &[&str]| needles.iter().any(|needle| words.contains(needle));
    match () {
        () if says_context_overflow(words) => "CONTEXT_WINDOW_EXCEEDED",
        () if says_quota(words) => "QUOTA",
        () if has(&[
            "invalid_api_key",
            "invalid api key",
            "authentication",
            "unauthorized",
            "permission_error",
        ]) =>
        {
            "AUTH"
        }
        () if has(&["rate_limit", "rate limit", "too many requests"]) => "RATE_LIMIT",
        () if has(&["invalid_request", "bad_request", "bad request"]) => "INVALID_REQUEST",
        () => "SERVER",
    }
}

/// Whether lower-case words say that the prompt does not fit the model's window.
fn says_context_overflow(words: &str) -> bool {
    let has = |needles: &[&str]| needles.iter().any(|needle| words.contains(needle));
    let names_window = has(&["context length", "context window", "context_length", "context_window"]);
    let over = has(&["exceed", "overflow", "maximum", "max ", "larger than", "too long", "too large"]);
    let too_long = has(&["too long for", "too large for", "is too long", "are too long"])
        && has(&["the model", "this model", "context", "prompt", "input", "messages"]);
    (names_window && over) || too_long
}

/// Whether lower-case words say that the account has nothing left to spend.
fn says_quota(words: &str) -> bool {
    let has = |needles: &[&str]| needles.iter().any(|needle| words.contains(needle));
    let insufficient = [" ", "_"].iter().any(|gap| {
        ["quota", "balance", "credits"].iter().any(|what| words.contains(&format!("insufficient{gap}{what}")))
    });
    let spent = has(&["quota", "usage limit"]) && has(&["exceeded", "exhausted", "reached"]);
    let empty = has(&["balance", "credits"]) && has(&["exhausted", "depleted"]);
    insufficient
        || spent
        || empty
        || has(&["out of credits", "out of budget", "credit balance is too low", "billing_error"])
}

/// What to do about an answer, when that is known.
fn advice_for(
    answer: &ErrorAnswer<'_>,
    code: &str,
    advice: Advice<'_>,
    wait_ms: Option<u64>,
) -> Option<String> {
    let Advice { url, key_variable } = advice;
    let advice = match (code, answer.status) {
        (_, 300..400) => {
            let target = answer.location.map(|to| format!(" to {to}")).unwrap_or_default();
            format!("{url} redirects{target}, which is not followed: set the base URL to the final address")
        }
        (_, 404 | 405) => match answer.protocol {
            Some(protocol) => format!(
                "asked {url}: check the base URL and the model id, and that the server speaks {protocol}"
            ),
            None => format!("asked {url}: check the base URL and the model id"),
        },
        (_, 407) => "the proxy wants a login: check HTTPS_PROXY".to_owned(),
        ("AUTH", _) => match key_variable {
            Some(variable) => format!("{url} refused the key: check {variable}"),
            None => format!("{url} asks for a key: configure one"),
        },
        _ => return server_advice(code, url, answer.protocol?, wait_ms),
    };
    Some(advice)
}

fn server_advice(code: &str, url: &str, protocol: &str, wait_ms: Option<u64>) -> Option<String> {
    let advice = match (code, wait_ms) {
        ("QUOTA", _) => {
            "the account has nothing left to spend: top it up, or choose another model with -m".to_owned()
        }
        ("RATE_LIMIT", Some(wait_ms)) => {
            format!("too many requests: go on in {} s", wait_ms.div_ceil(MS_PER_SECOND))
        }
        ("RATE_LIMIT", None) => "too many requests: go on in a while".to_owned(),
        ("SERVER", _) => format!("trouble at {url}: go on later"),
        ("INVALID_REQUEST" | "HTTP_422", _) => format!(
            "{url} does not take the request: check the model id, and that the server speaks {protocol}"
        ),
        _ => return None,
    };
    Some(advice)
}

fn generic_words(status: u16) -> String {
    let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    format!("the server answered {status} {}", reason.unwrap_or("without a reason")).trim_end().to_owned()
}

/// The message of an error body: of its JSON, or the text itself when it is short and no markup.
fn server_words(body: &str) -> Option<String> {
    let body = body.trim();
    if let Ok(json) = serde_json::from_str::<Value>(body) {
        return message_of(json.get("error").unwrap_or(&json));
    }
    let is_plain = !body.is_empty() && !body.starts_with('<');
    is_plain.then(|| safe_text(body, MAX_EXCERPT_CHARS))
}

/// The words of an error value: a string, or its `message` or `detail`.
pub(crate) fn message_of(error: &Value) -> Option<String> {
    let text = match error {
        Value::String(text) => Some(text.as_str()),
        _ => ["message", "detail", "msg"].iter().find_map(|key| error.get(key).and_then(Value::as_str)),
    };
    text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Milliseconds of a `Retry-After`: whole or broken seconds, or an HTTP date. `None` when it is not in the future.
fn retry_after_ms(value: &str, now: Timestamp) -> Option<u64> {
    let value = value.trim();
    let wait_ms = match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => (seconds * 1000.0).round(),
        Ok(_) => return None,
        Err(_) => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            (date.as_millisecond() - now.as_millisecond()) as f64
        }
    };
    // A float to an integer saturates.
    (wait_ms > 0.0).then_some(wait_ms as u64)
}

/// Text for one line of a terminal: control and bidirectional characters gone, white space collapsed, at most
/// `max_chars` characters.
pub(crate) fn safe_text(text: &str, max_chars: usize) -> String {
    let mut safe = String::new();
    let mut count = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = !safe.is_empty();
            continue;
        }
        if matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        {
            continue;
        }
        if count + usize::from(gap) >= max_chars {
            safe.push('…');
            return safe;
        }
        if std::mem::take(&mut gap) {
            safe.push(' ');
            count += 1;
        }
        safe.push(c);
        count += 1;
    }
    safe
}

/// The server's words with every occurrence of a secret in them replaced by `***`.
pub(crate) fn redact(text: &str, secret: Option<&str>) -> String {
    match secret {
        Some(secret) if secret.len() >= MIN_SECRET_BYTES => text.replace(secret, "***"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ADVICE: Advice<'static> = Advice { url: "https://h/chat/completions", key_variable: Some("A_KEY") };
    const CHAT: Option<&str> = Some("chat completions");

    fn failure(status: u16, body: &str) -> Failure {
        from_answer(
            &ErrorAnswer { status, body, protocol: CHAT, ..ErrorAnswer::default() },
            ADVICE,
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn maps_statuses_and_words() {
        let cases = [
            (401, "{}", "AUTH"),
            (403, "{}", "AUTH"),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "QUOTA"),
            (413, "", "INVALID_REQUEST"),
            (429, r#"{"error":{"message":"You exceeded your current quota"}}"#, "QUOTA"),
            (429, "slow down", "RATE_LIMIT"),
            (400, "This model's maximum context length is 65536 tokens", "CONTEXT_WINDOW_EXCEEDED"),
            (400, "prompt is too long: 9 tokens > 8 maximum", "CONTEXT_WINDOW_EXCEEDED"),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, "INVALID_REQUEST"),
            (400, "bad field", "INVALID_REQUEST"),
            (404, "", "HTTP_404"),
            (422, "", "HTTP_422"),
            (500, "", "SERVER"),
            (503, "<html>busy</html>", "SERVER"),
        ];
        for (status, body, code) in cases {
            let expected = if body.contains("context_length") { "CONTEXT_WINDOW_EXCEEDED" } else { code };
            assert_eq!(failure(status, body).code, expected, "{status} {body}");
        }
    }

    #[test]
    fn speaks_in_the_servers_words_and_says_what_to_do() {
        assert_eq!(
            failure(401, r#"{"error":{"message":"Bad key."}}"#).message,
            "Bad key (https://h/chat/completions refused the key: check A_KEY)"
        );
        let trouble = "(trouble at https://h/chat/completions: go on later)";
        assert_eq!(failure(500, r#"{"message":"down"}"#).message, format!("down {trouble}"));
        assert_eq!(failure(500, r#"{"error":"down"}"#).message, format!("down {trouble}"));
        let page = format!("the server answered 503 Service Unavailable {trouble}");
        assert_eq!(failure(503, "<html>").message, page);
        assert!(failure(404, "").message.ends_with("and that the server speaks chat completions)"));
        assert!(failure(407, "<html>").message.ends_with("(the proxy wants a login: check HTTPS_PROXY)"));
        assert!(failure(422, "x").message.contains("check the model id"));
        assert!(failure(402, "").message.contains("top it up"));
        assert!(failure(400, "x").message.contains("check the model id"));
        assert_eq!(failure(429, "slow down").message, "slow down (too many requests: go on in a while)");
        let endless = failure(401, &format!("{{\"message\":\"{}\"}}", "x".repeat(5000)));
        assert!(endless.message.ends_with("check A_KEY)"), "{}", endless.message);
        let answer = ErrorAnswer { status: 308, location: Some("https://x/"), ..ErrorAnswer::default() };
        let moved = from_answer(&answer, ADVICE, Timestamp::UNIX_EPOCH).message;
        assert!(moved.contains("redirects to https://x/"), "{moved}");
    }

    #[test]
    fn reads_retry_after() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(retry_after_ms("7", now), Some(7000));
        assert_eq!(retry_after_ms(" 0.5 ", now), Some(500));
        assert_eq!(retry_after_ms("Thu, 01 Jan 2026 00:00:10 GMT", now), Some(10_000));
        for useless in ["0", "-1", "Wed, 31 Dec 2025 23:59:59 GMT", "soon", "NaN", ""] {
            assert_eq!(retry_after_ms(useless, now), None, "{useless}");
        }
    }

    #[test]
    fn classifies_error_objects() {
        let cases = [
            (json!({"message":"Rate limit reached","code":"rate_limit_exceeded"}), "RATE_LIMIT"),
            (json!({"message":"no","code":429}), "RATE_LIMIT"),
            (json!({"message":"no","code":"401"}), "AUTH"),
            (json!({"message":"insufficient_quota"}), "QUOTA"),
            (json!({"message":"overloaded","code":"x"}), "SERVER"),
            (json!("just words"), "SERVER"),
        ];
        for (error, code) in cases {
            assert_eq!(from_error_object(&error).code, code, "{error}");
        }
    }

    #[test]
    fn makes_text_safe_and_bounded() {
        assert_eq!(safe_text(" a\u{1b}[31m\r\n\tb\u{202e} ", 99), "a [31m b");
        assert_eq!(safe_text("漢字漢字", 2), "漢字…");
        assert_eq!(safe_text("ab cd", 3), "ab…");
        assert_eq!(redact("key sk-1 and sk-1", Some("sk-1")), "key *** and ***");
    }
}
