//! How full the window is, and pruning of old tool results (llm spec 5 and 15.6).

use lorimer_model::{estimate_header_tokens, estimate_message_tokens};
use lorimer_protocol::{CompactionPrune, ContentBlock, Draft, Message, SeqRange, ToolResult};
use lorimer_session::{AppendError, Log, Session, SurfaceNode, SurfaceNodeKind};

use crate::options::AgentOptions;

/// After pruning has begun, it goes on until this share of the threshold is reached, so that it is not begun again at
/// every step.
const RELIEF_RATIO: f64 = 0.75;

/// Tokens that the next request will take: what the last reply's provider counted plus an estimate of what came
/// after, or an estimate of everything.
pub(crate) fn measure_tokens(log: &Log) -> u64 {
    let nodes = log.surface().nodes();
    // The last reply stands near the end, and only a replacement puts a later event before an earlier one.
    let place = |seq: u64| nodes.iter().rposition(|node| node.seq == seq);
    let anchor = log.last_usage().and_then(|(seq, usage)| Some((place(*seq)?, *seq, usage)));
    let was_replaced = log.surface().replace_generation() > 0;
    match anchor {
        Some((at, seq, usage)) if !(was_replaced && nodes[..at].iter().any(|node| node.seq > seq)) => {
            let later = nodes[at..].iter().filter(|node| node.seq > seq);
            let delta: u64 = later.map(|node| estimate_message_tokens(&node.message)).sum();
            usage.prompt_tokens() + usage.output_tokens + delta
        }
        _ => estimate_all(log),
    }
}

fn estimate_all(log: &Log) -> u64 {
    let header = log
        .request_header()
        .map_or(0, |header| estimate_header_tokens(header.system.as_deref(), log.tool_specs()));
    header + log.messages().map(|message| estimate_message_tokens(message)).sum::<u64>()
}

/// Prunes the oldest large tool results when the window fills up. Returns how many were pruned.
pub(crate) fn relieve(session: &Session, options: &AgentOptions, window: u64) -> Result<usize, AppendError> {
    let threshold = (window as f64 * options.prune_threshold_ratio) as u64;
    let mut total = session.with_log(measure_tokens);
    if total < threshold {
        return Ok(0);
    }
    let target = (threshold as f64 * RELIEF_RATIO) as u64;
    let mut pruned = 0;
    for candidate in candidates(session, options) {
        if total < target {
            break;
        }
        total = total.saturating_sub(prune(session, options, &candidate)?);
        pruned += 1;
    }
    Ok(pruned)
}

/// Prunes every large tool result but those of the newest step. Returns how many were pruned.
pub(crate) fn relieve_all(session: &Session, options: &AgentOptions) -> Result<usize, AppendError> {
    let candidates = candidates(session, options);
    for candidate in &candidates {
        prune(session, options, candidate)?;
    }
    Ok(candidates.len())
}

/// Large tool results, oldest first, without those that the model has not answered yet.
fn candidates(session: &Session, options: &AgentOptions) -> Vec<SurfaceNode> {
    session.with_log(|log| {
        let nodes = log.surface().nodes();
        let last_reply = nodes.iter().rposition(|node| node.kind == SurfaceNodeKind::Assistant).unwrap_or(0);
        nodes[..last_reply]
            .iter()
            .filter(|node| node.kind == SurfaceNodeKind::ToolResult)
            .filter(|node| result_text(&node.message).chars().count() > options.prune_threshold_chars)
            .cloned()
            .collect()
    })
}

fn result_text(message: &Message) -> String {
    let blocks = message.tool_result().map_or(&[][..], |block| &block.content);
    blocks.iter().filter_map(ContentBlock::as_text).collect()
}

/// Replaces one result by its ends. Returns the estimated tokens that were saved.
fn prune(session: &Session, options: &AgentOptions, node: &SurfaceNode) -> Result<u64, AppendError> {
    let before = estimate_message_tokens(&node.message);
    let mut message = node.message.as_ref().clone();
    if let [ContentBlock::ToolResult(block)] = message.content.as_mut_slice() {
        let shortened =
            shorten(&result_text(&node.message), options.prune_head_chars, options.prune_tail_chars);
        block.content = vec![ContentBlock::text(shortened)];
    }
    let after = estimate_message_tokens(&message);
    if after >= before {
        return Ok(0);
    }
    session.append(Draft::new(&CompactionPrune {
        shadowed_range: SeqRange { start: node.seq, end: node.seq },
        shadowed_seqs: vec![node.seq],
        shadowed_token_count: before,
    }))?;
    let (turn, step) = node.turn_step.unwrap_or_default();
    let parts = node.result.as_deref().cloned().unwrap_or_default();
    let meta = parts.meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
    let result = ToolResult { turn, step, message, error: parts.error, meta };
    session.append(Draft::new(&result).citing(vec![node.seq]).replacing(node.seq, node.seq))?;
    Ok(before.saturating_sub(after))
}

/// The first and last characters with a line between that says what is gone.
fn shorten(text: &str, head_chars: usize, tail_chars: usize) -> String {
    let total = text.chars().count();
    let head_end = text.char_indices().nth(head_chars).map_or(text.len(), |(at, _)| at);
    let tail_start =
        text.char_indices().nth(total.saturating_sub(tail_chars)).map_or(text.len(), |(at, _)| at);
    let omitted = total.saturating_sub(head_chars + tail_chars);
    format!(
        "{}\n[… {omitted} characters of this older result were dropped to save room; repeat the call to see them …]\n{}",
        &text[..head_end],
        &text[tail_start.max(head_end)..]
    )
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn ends_are_kept_and_no_character_is_split() {
        let text = format!("{}{}", "é".repeat(10), "z".repeat(10));
        let short = shorten(&text, 3, 2);
        assert!(short.starts_with("ééé\n[… 15 characters") && short.ends_with("…]\nzz"));
    }
}
