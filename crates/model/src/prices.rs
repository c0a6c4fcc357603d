//! What a reply costs, by configured prices.

use lorimer_protocol::TokenUsage;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// How many tokens a price is for.
const TOKENS_PER_PRICE: f64 = 1_000_000.0;

/// Prices of a model in USD per million tokens. They only ever come from configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Prompt tokens that no cache had to do with.
    #[serde(deserialize_with = "price")]
    pub input: f64,
    /// Generated tokens, reasoning included.
    #[serde(deserialize_with = "price")]
    pub output: f64,
    /// Prompt tokens read from a cache; `None` costs what `input` does.
    #[serde(default, deserialize_with = "optional_price", skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to a cache; `None` costs what `input` does.
    #[serde(default, deserialize_with = "optional_price", skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(deserializer)?;
    match price.is_finite() && price >= 0.0 {
        true => Ok(price),
        false => Err(D::Error::custom("a price is a number of USD per million tokens that is not negative")),
    }
}

fn optional_price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    price(deserializer).map(Some)
}

/// What these tokens cost in USD. The counts are disjoint parts, so each is paid once; reasoning is part of the output.
pub fn cost_usd(usage: &TokenUsage, prices: &Prices) -> f64 {
    let part = |tokens: Option<u64>, price: f64| tokens.unwrap_or(0) as f64 * price;
    let sum = part(Some(usage.input_tokens), prices.input)
        + part(usage.cache_read_tokens, prices.cache_read.unwrap_or(prices.input))
        + part(usage.cache_write_tokens, prices.cache_write.unwrap_or(prices.input))
        + part(Some(usage.output_tokens), prices.output);
    sum / TOKENS_PER_PRICE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const USAGE: TokenUsage = TokenUsage {
        input_tokens: 1_000_000,
        output_tokens: 500_000,
        cache_read_tokens: Some(2_000_000),
        cache_write_tokens: Some(100_000),
        reasoning_tokens: Some(400_000),
    };

    fn assert_cost(usage: &TokenUsage, prices: &Prices, expected: f64) {
        let cost = cost_usd(usage, prices);
        assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
    }

    #[test]
    fn pays_each_part_once() {
        let prices = Prices { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        assert_cost(&USAGE, &prices, 3.0 + 0.6 + 0.375 + 7.5);
        assert_cost(&TokenUsage::default(), &prices, 0.0);
    }

    #[test]
    fn a_cache_without_a_price_costs_what_input_does() {
        let prices = Prices { input: 2.0, output: 0.0, ..Prices::default() };
        assert_cost(&USAGE, &prices, 2.0 + 4.0 + 0.2);
        let free_reads = Prices { cache_read: Some(0.0), ..prices };
        assert_cost(&USAGE, &free_reads, 2.0 + 0.2);
        let no_cache = TokenUsage { cache_read_tokens: None, cache_write_tokens: None, ..USAGE };
        assert_cost(&no_cache, &prices, 2.0);
    }

    #[test]
    fn takes_only_sensible_prices() {
        let read = |value| serde_json::from_value::<Prices>(value);
        assert_eq!(read(json!({"input": 1, "output": 2.5})).unwrap().output, 2.5);
        assert!(read(json!({"input": -1, "output": 2})).is_err());
        assert!(read(json!({"input": 1})).is_err());
        assert!(read(json!({"input": 1, "output": 1, "cached": 1})).is_err());
    }
}
