//! One POST and its streamed answer.
//!
//! What must hold:
//! - The stream ends with one finish: good, failed in the server's words, or aborted.
//! - Only waiting counts against the limits; the time a consumer takes between chunks does not.
//! - Once the server said that it is done, nothing is waited for.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use jiff::Timestamp;
use lorimer_protocol::{Failure, FinishReason, StreamChunk};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::ChatConfig;
use super::decode::{ChatDecoder, Progress, frame_failure};
use crate::ChunkStream;
use crate::failure::{self, Advice, ErrorAnswer, redact};
use crate::http::{LazyClient, shown_url, transport_message};
use crate::sse::{SseDecoder, SseEvent};

/// How much of an error's body is read, in bytes; also how much is kept of a body until its first event.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long an error's body is waited for, in milliseconds.
const ERROR_BODY_TIMEOUT_MS: u64 = 10_000;
/// Headers that carry the server's id of a request.
const REQUEST_ID_HEADERS: [&str; 2] = ["x-request-id", "x-deepseek-request-id"];

/// Everything one exchange needs.
pub(super) struct Exchange {
    pub config: Arc<ChatConfig>,
    pub client: Arc<LazyClient>,
    pub url: Url,
    pub body: Vec<u8>,
    pub cancel: CancellationToken,
}

impl Exchange {
    /// The exchange as a stream; nothing is sent before it is polled, and dropping it closes the connection.
    pub(super) fn into_stream(self) -> ChunkStream {
        let state = State { exchange: self, stage: Stage::Unsent, queue: VecDeque::new() };
        Box::pin(stream::unfold(state, |mut state| async move {
            let chunk = state.next().await?;
            Some((chunk, state))
        }))
    }

    fn key(&self) -> Option<&str> {
        self.config.api_key.as_ref().map(|key| key.expose())
    }

    /// Waits for `work`, but no longer than the limit or the caller's patience.
    async fn wait<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Waited<T> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Waited::Cancelled,
            done = timeout(limit, work) => done.map_or(Waited::TimedOut, Waited::Done),
        }
    }

    async fn send(&mut self) -> Result<Reading, Stop> {
        let client = self.client.get(&self.url, self.config.connect_timeout_ms);
        let client = client.map_err(|message| Failure::new("TRANSPORT", message))?.clone();
        let body = std::mem::take(&mut self.body);
        let request = client.post(self.url.clone()).headers(self.headers()?).body(body);
        let limit_ms = self.config.idle_timeout_ms;
        let response = match self.wait(Duration::from_millis(limit_ms), request.send()).await {
            Waited::Cancelled => return Err(Stop::Aborted),
            Waited::TimedOut => return Err(timed_out("did not answer", limit_ms).into()),
            Waited::Done(Err(error)) => return Err(self.transport(error).into()),
            Waited::Done(Ok(response)) => response,
        };
        match response.status().is_success() {
            true => Ok(Reading::new(response)),
            false => Err(self.error_answer(response).await),
        }
    }

    fn headers(&self) -> Result<HeaderMap, Failure> {
        let unusable =
            |_| Failure::new("INVALID_REQUEST", "the user agent or the key cannot stand in a header");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::USER_AGENT, HeaderValue::from_str(&self.config.user_agent).map_err(unusable)?);
        if let Some(key) = self.key() {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {key}")).map_err(unusable)?;
            bearer.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, bearer);
        }
        Ok(headers)
    }

    fn transport(&self, error: reqwest::Error) -> Failure {
        let code = if error.is_timeout() { "TIMEOUT" } else { "TRANSPORT" };
        Failure::new(
            code,
            failure::safe_text(&transport_message(error, &self.url), failure::MAX_MESSAGE_CHARS),
        )
    }

    async fn error_answer(&self, mut response: Response) -> Stop {
        let body =
            match self.wait(Duration::from_millis(ERROR_BODY_TIMEOUT_MS), error_body(&mut response)).await {
                Waited::Cancelled => return Stop::Aborted,
                Waited::TimedOut => String::new(),
                Waited::Done(body) => redact(&body, self.key()),
            };
        let headers = response.headers();
        let url = shown_url(&self.url);
        let advice = Advice { url: &url, key_variable: self.config.key_variable.as_deref() };
        let location = header_text(headers, &[header::LOCATION.as_str()]).map(|to| redact(to, self.key()));
        let request_id = header_text(headers, &REQUEST_ID_HEADERS).map(|id| redact(id, self.key()));
        let answer = ErrorAnswer {
            status: response.status().as_u16(),
            body: &body,
            retry_after: header_text(headers, &[header::RETRY_AFTER.as_str()]),
            request_id: request_id.as_deref(),
            location: location.as_deref(),
        };
        Stop::Failed(failure::from_answer(&answer, advice, Timestamp::now()))
    }
}

/// What became of a wait.
enum Waited<T> {
    Done(T),
    TimedOut,
    Cancelled,
}

/// Why an exchange ends without the server's own finish.
enum Stop {
    Failed(Failure),
    Aborted,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

enum Stage {
    Unsent,
    Reading(Box<Reading>),
    Ended,
}

struct State {
    exchange: Exchange,
    stage: Stage,
    queue: VecDeque<StreamChunk>,
}

impl State {
    async fn next(&mut self) -> Option<StreamChunk> {
        loop {
            if !matches!(self.stage, Stage::Ended) && self.exchange.cancel.is_cancelled() {
                self.queue.clear();
                self.stop(Stop::Aborted);
            }
            if let Some(chunk) = self.queue.pop_front() {
                return Some(chunk);
            }
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return None,
                Stage::Unsent => match self.exchange.send().await {
                    Ok(reading) => self.stage = Stage::Reading(Box::new(reading)),
                    Err(stop) => self.stop(stop),
                },
                Stage::Reading(reading) => self.read(reading).await,
            }
        }
    }

    async fn read(&mut self, mut reading: Box<Reading>) {
        match reading.read(&self.exchange, &mut self.queue).await {
            Ok(true) => self.stage = Stage::Reading(reading),
            Ok(false) => {
                let request_id = reading.request_id(self.exchange.key());
                reading.decoder.end(&mut self.queue);
                if let Some(StreamChunk::Finish { reason: FinishReason::Error { failure }, .. }) =
                    self.queue.back_mut()
                {
                    failure.request_id = request_id;
                }
            }
            Err(Stop::Failed(mut failure)) => {
                failure.request_id = failure.request_id.or_else(|| reading.request_id(self.exchange.key()));
                self.stop(Stop::Failed(failure));
            }
            Err(Stop::Aborted) => self.stop(Stop::Aborted),
        }
    }

    fn stop(&mut self, stop: Stop) {
        self.stage = Stage::Ended;
        let reason = match stop {
            Stop::Aborted => FinishReason::Aborted { failure: Failure::new("ABORTED", "cancelled") },
            Stop::Failed(failure) => FinishReason::Error { failure },
        };
        self.queue.push_back(StreamChunk::Finish { reason, replay_state: None });
    }
}

/// An answer that is being read.
struct Reading {
    response: Response,
    sse: SseDecoder,
    decoder: ChatDecoder,
    events: Vec<SseEvent>,
    /// The first bytes, until an event shows that this is an event stream.
    head: Vec<u8>,
    seen_event: bool,
    waited_for_content: Duration,
    waited_for_rest: Duration,
}

impl Reading {
    fn new(response: Response) -> Self {
        Self {
            response,
            sse: SseDecoder::default(),
            decoder: ChatDecoder::default(),
            events: Vec::new(),
            head: Vec::new(),
            seen_event: false,
            waited_for_content: Duration::ZERO,
            waited_for_rest: Duration::ZERO,
        }
    }

    fn request_id(&self, key: Option<&str>) -> Option<String> {
        let id = redact(header_text(self.response.headers(), &REQUEST_ID_HEADERS)?, key);
        Some(failure::safe_text(&id, failure::MAX_EXCERPT_CHARS))
    }

    /// Reads and decodes the next bytes. `false` when the stream is at its end.
    async fn read(&mut self, exchange: &Exchange, queue: &mut VecDeque<StreamChunk>) -> Result<bool, Stop> {
        let finishing = self.decoder.progress() == Progress::Finishing;
        let begun = Instant::now();
        let waited = exchange.wait(self.limit(&exchange.config, finishing), self.response.chunk()).await;
        let spent = begun.elapsed();
        match finishing {
            true => self.waited_for_rest += spent,
            false => self.waited_for_content += spent,
        }
        match waited {
            Waited::Cancelled => Err(Stop::Aborted),
            // The finish reason is known: whatever keeps the counts back does not spoil the reply.
            Waited::TimedOut | Waited::Done(Err(_)) if finishing => Ok(false),
            Waited::TimedOut => Err(self.timed_out(&exchange.config).into()),
            Waited::Done(Err(error)) => Err(exchange.transport(error).into()),
            Waited::Done(Ok(None)) => self.at_end(exchange.key()).map(|()| false),
            Waited::Done(Ok(Some(bytes))) => self.feed(&bytes, exchange.key(), queue),
        }
    }

    fn limit(&self, config: &ChatConfig, finishing: bool) -> Duration {
        let idle = Duration::from_millis(config.idle_timeout_ms);
        let left = match finishing {
            true => Duration::from_millis(config.settle_timeout_ms).saturating_sub(self.waited_for_rest),
            false => Duration::from_millis(config.content_timeout_ms).saturating_sub(self.waited_for_content),
        };
        idle.min(left)
    }

    fn timed_out(&self, config: &ChatConfig) -> Failure {
        match self.waited_for_content >= Duration::from_millis(config.content_timeout_ms) {
            true => timed_out("sent no content", config.content_timeout_ms),
            false => timed_out("sent nothing", config.idle_timeout_ms),
        }
    }

    fn feed(
        &mut self,
        bytes: &[u8],
        key: Option<&str>,
        queue: &mut VecDeque<StreamChunk>,
    ) -> Result<bool, Stop> {
        let fed = self.sse.feed(bytes, &mut self.events);
        let before = queue.len();
        for event in std::mem::take(&mut self.events) {
            self.seen_event = true;
            match self.decoder.frame(&event.name, &event.data, queue) {
                Ok(Progress::Done) => return Ok(false),
                Ok(_) => {}
                Err(failure) => {
                    let clean = frame_failure(&event.name, &redact(&event.data, key));
                    return Err(clean.unwrap_or(failure).into());
                }
            }
        }
        fed.map_err(|error| Failure::new("MALFORMED_RESPONSE", error.to_string()))?;
        if queue.len() > before {
            self.waited_for_content = Duration::ZERO;
        }
        match self.seen_event {
            true => self.head = Vec::new(),
            false => self.keep_head(bytes, key)?,
        }
        Ok(true)
    }

    fn keep_head(&mut self, bytes: &[u8], key: Option<&str>) -> Result<(), Stop> {
        let room = MAX_BODY_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.head.len() >= MAX_BODY_BYTES && !self.sse.seen_field() {
            return Err(self.no_event_stream(key).into());
        }
        Ok(())
    }

    /// The body ended. Without any event it may never have been an event stream.
    fn at_end(&self, key: Option<&str>) -> Result<(), Stop> {
        if self.seen_event || self.sse.seen_field() {
            return Ok(());
        }
        if self.head.iter().all(u8::is_ascii_whitespace) {
            let message = "the server answered 200 with an empty body";
            return Err(Failure::new("EMPTY_RESPONSE", message).into());
        }
        Err(self.no_event_stream(key).into())
    }

    fn no_event_stream(&self, key: Option<&str>) -> Failure {
        let text = redact(&String::from_utf8_lossy(&self.head), key);
        let is_object = text.trim_start().starts_with('{');
        let said = if is_object { frame_failure("", text.trim()) } else { None };
        said.unwrap_or_else(|| {
            failure::malformed(
                "the server answered 200 with something other than an event stream (check the base URL)",
                &text,
            )
        })
    }
}

fn timed_out(what: &str, limit_ms: u64) -> Failure {
    Failure::new("TIMEOUT", format!("the server {what} for {limit_ms} ms"))
}

/// The first bytes of an error's body as text. It is only shown and searched, so odd bytes may be replaced.
async fn error_body(response: &mut Response) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_BODY_BYTES
        && let Ok(Some(bytes)) = response.chunk().await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(MAX_BODY_BYTES);
    String::from_utf8_lossy(&body).into_owned()
}

/// The first of these headers that is there and is text.
fn header_text<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}
