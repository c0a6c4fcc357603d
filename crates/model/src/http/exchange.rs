//! One POST and its streamed answer.
//!
//! What must hold:
//! - The stream ends with one finish: good, failed in the server's words, or aborted.
//! - Only waiting counts against the limits; the time a consumer takes between chunks does not.
//! - Once the server said that it is done, nothing is waited for.

use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use jiff::Timestamp;
use lorimer_protocol::{Failure, FinishReason, StreamChunk};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::client::{LazyClient, shown_url, transport_message};
use super::reading::Reading;
use super::{ApiKey, Decode, Protocol, ProviderConfig};
use crate::ChunkStream;
use crate::failure::{self, Advice, ErrorAnswer, redact};

/// How much of an error's body is read, in bytes; also how much is kept of a body until its first event.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long an error's body is waited for, in milliseconds.
const ERROR_BODY_TIMEOUT_MS: u64 = 10_000;
/// Headers that carry the server's id of a request.
pub(super) const REQUEST_ID_HEADERS: [&str; 3] = ["x-request-id", "x-deepseek-request-id", "request-id"];

/// Everything one exchange needs.
pub(super) struct Exchange<P> {
    pub config: Arc<ProviderConfig>,
    pub client: Arc<LazyClient>,
    pub url: Url,
    pub body: Bytes,
    pub cancel: CancellationToken,
    pub protocol: PhantomData<P>,
}

impl<P: Protocol> Exchange<P> {
    /// The exchange as a stream; nothing is sent before it is polled, and dropping it closes the connection.
    pub(super) fn into_stream(self) -> ChunkStream {
        let state = State { exchange: self, stage: Stage::Unsent, queue: VecDeque::new() };
        Box::pin(stream::unfold(state, |mut state| async move {
            let chunk = state.next().await?;
            Some((chunk, state))
        }))
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.config.api_key.as_ref().map(ApiKey::expose)
    }

    /// Says whose failure it is.
    fn name(&self, failure: &mut Failure) {
        // Once more: a key that came escaped in JSON has been taken apart since.
        failure.message = format!("{}: {}", self.config.name, redact(&failure.message, self.key()));
    }

    /// Waits for `work`, but no longer than the limit or the caller's patience.
    pub(super) async fn wait<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Waited<T> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Waited::Cancelled,
            done = timeout(limit, work) => done.map_or(Waited::TimedOut, Waited::Done),
        }
    }

    async fn send(&mut self) -> Result<Reading<P>, Stop> {
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
        P::add_headers(&mut headers, self.config.api_key.as_ref()).map_err(unusable)?;
        Ok(headers)
    }

    pub(super) fn transport(&self, error: reqwest::Error) -> Failure {
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
            protocol: Some(P::NAME),
        };
        Stop::Failed(failure::from_answer(&answer, advice, Timestamp::now()))
    }
}

/// What became of a wait.
pub(super) enum Waited<T> {
    Done(T),
    TimedOut,
    Cancelled,
}

/// Why an exchange ends without the server's own finish.
pub(super) enum Stop {
    Failed(Failure),
    Aborted,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

enum Stage<P: Protocol> {
    Unsent,
    Reading(Box<Reading<P>>),
    Ended,
}

struct State<P: Protocol> {
    exchange: Exchange<P>,
    stage: Stage<P>,
    queue: VecDeque<StreamChunk>,
}

impl<P: Protocol> State<P> {
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

    async fn read(&mut self, mut reading: Box<Reading<P>>) {
        match reading.read(&self.exchange, &mut self.queue).await {
            Ok(true) => self.stage = Stage::Reading(reading),
            Ok(false) => {
                let request_id = reading.request_id(self.exchange.key());
                reading.decoder.end(&mut self.queue);
                if let Some(StreamChunk::Finish { reason: FinishReason::Error { failure }, .. }) =
                    self.queue.back_mut()
                {
                    failure.request_id = request_id;
                    self.exchange.name(failure);
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
            Stop::Failed(mut failure) => {
                self.exchange.name(&mut failure);
                FinishReason::Error { failure }
            }
        };
        self.queue.push_back(StreamChunk::Finish { reason, replay_state: None });
    }
}

pub(super) fn timed_out(what: &str, limit_ms: u64) -> Failure {
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
pub(super) fn header_text<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}
