//! When a failed request is repeated and after how long (llm spec 6).

use std::time::{SystemTime, UNIX_EPOCH};

use lorimer_model::RetryPolicy;
use lorimer_protocol::Failure;

/// The wait before repeat number `retry` (1-based) in milliseconds; `None` when the failure stands.
///
/// A provider's own wish is obeyed without jitter up to the policy's limit; beyond it the failure stands.
pub(crate) fn retry_delay_ms(
    policy: &RetryPolicy,
    failure: &Failure,
    retry: u32,
    chance: f64,
) -> Option<u64> {
    if retry > policy.max_retries || !policy.retryable_codes.contains(&failure.code) {
        return None;
    }
    if let Some(wish) = failure.provider_retry_after_ms {
        return (wish <= policy.max_retry_after_ms).then_some(wish);
    }
    let doubled = policy.initial_delay_ms.saturating_mul(1_u64.checked_shl(retry - 1).unwrap_or(u64::MAX));
    let base = doubled.min(policy.max_delay_ms) as f64;
    let jittered = base * (1.0 + policy.jitter_ratio * (2.0 * chance - 1.0));
    Some((jittered.round() as u64).min(policy.max_delay_ms))
}

/// A number in `0..1` that differs between processes and moments; only for spreading retries.
pub(crate) fn chance() -> f64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let mixed = (nanos ^ std::process::id().rotate_left(16)).wrapping_mul(0x9e37_79b9);
    f64::from(mixed) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: &str, retry_after_ms: Option<u64>) -> Failure {
        Failure { provider_retry_after_ms: retry_after_ms, ..Failure::new(code, "x") }
    }

    #[test]
    fn waits_double_up_to_the_limit_and_end() {
        let policy = RetryPolicy::default();
        let waits: Vec<_> =
            (1..=6).map(|retry| retry_delay_ms(&policy, &failure("SERVER", None), retry, 0.5)).collect();
        assert_eq!(waits, [Some(500), Some(1000), Some(2000), Some(4000), Some(8000), None]);
    }

    #[test]
    fn a_wish_is_obeyed_up_to_two_minutes() {
        let policy = RetryPolicy::default();
        assert_eq!(retry_delay_ms(&policy, &failure("RATE_LIMIT", Some(119_000)), 1, 0.9), Some(119_000));
        assert_eq!(retry_delay_ms(&policy, &failure("RATE_LIMIT", Some(121_000)), 1, 0.9), None);
    }

    #[test]
    fn what_a_repeat_cannot_mend_is_not_repeated() {
        let policy = RetryPolicy::default();
        for code in ["AUTH", "QUOTA", "INVALID_REQUEST", "CONTEXT_WINDOW_EXCEEDED", "MALFORMED_RESPONSE"] {
            assert_eq!(retry_delay_ms(&policy, &failure(code, None), 1, 0.5), None, "{code}");
        }
    }
}
