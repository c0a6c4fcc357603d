//! An answer as it comes in: bytes to events to chunks, and what an answer is that is no event stream.

use std::collections::VecDeque;
use std::time::Duration;

use lorimer_protocol::{Failure, StreamChunk};
use reqwest::Response;
use tokio::time::Instant;

use super::exchange::{Exchange, MAX_BODY_BYTES, REQUEST_ID_HEADERS, Stop, Waited, header_text, timed_out};
use super::{Decode, Progress, Protocol, ProviderConfig, frame_failure};
use crate::failure::{self, redact};
use crate::sse::{SseDecoder, SseEvent};

/// Most bytes of one answer: many times the longest reply of any model, and a bound to what a server can make
/// this process hold.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;

/// An answer that is being read.
pub(super) struct Reading<P: Protocol> {
    response: Response,
    sse: SseDecoder,
    pub decoder: P::Decoder,
    events: Vec<SseEvent>,
    /// The first bytes, until an event shows that this is an event stream.
    head: Vec<u8>,
    seen_event: bool,
    received_bytes: usize,
    waited_for_content: Duration,
    waited_for_rest: Duration,
}

impl<P: Protocol> Reading<P> {
    pub fn new(response: Response) -> Self {
        Self {
            response,
            sse: SseDecoder::default(),
            decoder: P::Decoder::default(),
            events: Vec::new(),
            head: Vec::new(),
            seen_event: false,
            received_bytes: 0,
            waited_for_content: Duration::ZERO,
            waited_for_rest: Duration::ZERO,
        }
    }

    pub fn request_id(&self, key: Option<&str>) -> Option<String> {
        let id = redact(header_text(self.response.headers(), &REQUEST_ID_HEADERS)?, key);
        Some(failure::safe_text(&id, failure::MAX_EXCERPT_CHARS))
    }

    /// Reads and decodes the next bytes. `false` when the stream is at its end.
    pub async fn read(
        &mut self,
        exchange: &Exchange<P>,
        queue: &mut VecDeque<StreamChunk>,
    ) -> Result<bool, Stop> {
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

    fn limit(&self, config: &ProviderConfig, finishing: bool) -> Duration {
        let idle = Duration::from_millis(config.idle_timeout_ms);
        let left = match finishing {
            true => Duration::from_millis(config.settle_timeout_ms).saturating_sub(self.waited_for_rest),
            false => Duration::from_millis(config.content_timeout_ms).saturating_sub(self.waited_for_content),
        };
        idle.min(left)
    }

    fn timed_out(&self, config: &ProviderConfig) -> Failure {
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
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_REPLY_BYTES {
            let message = format!("the server sent more than {} MiB in one reply", MAX_REPLY_BYTES >> 20);
            return Err(Failure::new("MALFORMED_RESPONSE", message).into());
        }
        let fed = self.sse.feed(bytes, &mut self.events);
        let before = queue.len();
        for event in std::mem::take(&mut self.events) {
            self.seen_event = true;
            match self.decoder.frame(&event.name, &event.data, queue) {
                Ok(Progress::Done) => return Ok(false),
                Ok(_) => {}
                Err(failure) => {
                    let clean = frame_failure::<P::Decoder>(&event.name, &redact(&event.data, key));
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
        let said = if is_object { frame_failure::<P::Decoder>("", text.trim()) } else { None };
        said.unwrap_or_else(|| {
            failure::malformed(
                "the server answered 200 with something other than an event stream (check the base URL)",
                &text,
            )
        })
    }
}
