//! Token counts of many replies.

use lorimer_protocol::TokenUsage;

/// Adds a reply's counts. A log may claim any number, so a sum stops at the largest.
pub(super) fn add(total: &mut TokenUsage, reply: &TokenUsage) {
    total.input_tokens = total.input_tokens.saturating_add(reply.input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(reply.output_tokens);
    for (sum, part) in [
        (&mut total.cache_read_tokens, reply.cache_read_tokens),
        (&mut total.cache_write_tokens, reply.cache_write_tokens),
        (&mut total.reasoning_tokens, reply.reasoning_tokens),
    ] {
        if let Some(part) = part {
            *sum = Some(sum.unwrap_or(0).saturating_add(part));
        }
    }
}
