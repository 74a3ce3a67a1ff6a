//! Money and prices. Amounts are whole millionths of a dollar, so sums are exact, and prices are amounts for a million
//! tokens.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many parts a dollar has.
const PARTS: u64 = 1_000_000;

/// The digits after the decimal point that an amount can have.
const DECIMALS: usize = 6;

/// The tokens that prices are for.
const TOKENS_OF_A_PRICE: u128 = 1_000_000;

/// An amount of US dollars, in whole millionths. It is never negative, and sums that are too large stay at the largest
/// amount.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount in millionths of a dollar.
    #[must_use]
    pub const fn from_microdollars(microdollars: u64) -> Self {
        Self(microdollars)
    }

    /// The amount in millionths of a dollar.
    #[must_use]
    pub const fn as_microdollars(self) -> u64 {
        self.0
    }

    /// What is left of it after `spent`.
    #[must_use]
    pub const fn saturating_sub(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }

    /// The sum with another amount.
    #[must_use]
    pub const fn saturating_add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// The amount in dollars as a decimal number, such as `0.0042`: the shortest with at least two digits after the
    /// point.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let mut digits = format!("{:0DECIMALS$}", self.0 % PARTS);
        while digits.len() > 2 && digits.ends_with('0') {
            digits.pop();
        }
        format!("{}.{digits}", self.0 / PARTS)
    }
}

impl fmt::Display for Money {
    /// For people, such as `$0.0042`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.to_decimal())
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, more: Self) {
        *self = self.saturating_add(more);
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an amount in dollars; write a decimal number such as `0.0042`, with at most 6 digits after the point"
)]
pub struct NotMoney(String);

impl FromStr for Money {
    type Err = NotMoney;

    /// Reads dollars as a decimal number, with or without `$`.
    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let refused = || NotMoney(text.chars().take(40).collect());
        let number = text.trim();
        let number = number.strip_prefix('$').unwrap_or(number);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Zeros at the end do not make an amount finer.
        let decimals = match decimals.trim_end_matches('0') {
            "" if are_digits(decimals) => "0",
            shortened => shortened,
        };
        if !are_digits(whole) || !are_digits(decimals) || decimals.len() > DECIMALS {
            return Err(refused());
        }
        let dollars: u64 = whole.parse().map_err(|_| refused())?;
        let parts: u64 = format!("{decimals:0<DECIMALS$}")
            .parse()
            .map_err(|_| refused())?;
        let amount = dollars.checked_mul(PARTS);
        let amount = amount.and_then(|amount| amount.checked_add(parts));
        amount.map(Self).ok_or_else(refused)
    }
}

/// The tokens of one answer of a model, as a provider charges for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// All input, with what was read from a cache or written to it.
    pub input: u64,
    /// The part of the input that was read from the provider's cache.
    pub cached: u64,
    /// The part of the input that was written to the provider's cache.
    pub cache_write: u64,
    /// The output, with the reasoning.
    pub output: u64,
}

/// The prices of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenPrices {
    /// Input.
    pub input: Money,
    /// Input that the provider reads from its cache.
    pub cached_input: Money,
    /// Input that the provider writes to its cache.
    pub cache_write: Money,
    /// Output.
    pub output: Money,
}

/// What a provider charges for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelPrice {
    /// The usual prices.
    pub prices: TokenPrices,
    /// The prices of a request with more input tokens than this, if they differ.
    pub long: Option<(u64, TokenPrices)>,
}

impl ModelPrice {
    /// What an answer costs. Rounded up to a whole millionth of a dollar, so that many small answers never cost more
    /// than their sum says.
    #[must_use]
    pub fn cost(&self, tokens: TokenCounts) -> Money {
        let prices = match self.long {
            Some((limit, long)) if tokens.input > limit => long,
            _ => self.prices,
        };
        let special = tokens.cached.saturating_add(tokens.cache_write);
        let parts = [
            (tokens.input.saturating_sub(special), prices.input),
            (tokens.cached, prices.cached_input),
            (tokens.cache_write, prices.cache_write),
            (tokens.output, prices.output),
        ];
        // The largest product of two 64-bit numbers, four times, is more than 128 bits can hold.
        let sum = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(price.0))
        });
        Money(u64::try_from(sum.div_ceil(TOKENS_OF_A_PRICE)).unwrap_or(u64::MAX))
    }

    /// Whether answers cost nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        let is_zero = |prices: &TokenPrices| *prices == TokenPrices::default();
        is_zero(&self.prices) && self.long.as_ref().is_none_or(|(_, long)| is_zero(long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_is_exact_and_its_text_can_be_read_again() {
        for (text, microdollars, shown) in [
            ("0.0042", 4_200, "$0.0042"),
            ("1.5", 1_500_000, "$1.50"),
            ("$2", 2_000_000, "$2.00"),
            ("0.000001", 1, "$0.000001"),
            ("0.10000000", 100_000, "$0.10"),
            ("18446744073709.551615", u64::MAX, "$18446744073709.551615"),
        ] {
            let amount = money(text);
            assert_eq!(amount.as_microdollars(), microdollars, "{text}");
            assert_eq!(amount.to_string(), shown);
            assert_eq!(money(&amount.to_string()), amount);
        }
    }

    #[test]
    fn what_is_no_exact_amount_is_refused() {
        for text in [
            "",
            "$",
            ".",
            "1.",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "0.0000001",
            "1,5",
            "1 000",
            "18446744073709.551616",
            "99999999999999999999",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price_and_the_sum_is_rounded_up_once() {
        let price = ModelPrice {
            prices: TokenPrices {
                input: money("2.50"),
                cached_input: money("0.25"),
                cache_write: money("3"),
                output: money("10"),
            },
            long: None,
        };
        let tokens = TokenCounts {
            input: 1_000,
            cached: 600,
            cache_write: 100,
            output: 7,
        };
        // 300 * 2.5 + 600 * 0.25 + 100 * 3 + 7 * 10 = 1270 millionths.
        assert_eq!(price.cost(tokens), money("0.00127"));
        let one = TokenCounts {
            input: 1,
            cached: 1,
            ..TokenCounts::default()
        };
        assert_eq!(price.cost(one), money("0.000001"), "rounded up");
        assert_eq!(price.cost(TokenCounts::default()), Money::ZERO);
    }

    #[test]
    fn a_long_request_has_the_prices_of_long_requests_in_whole() {
        let price = ModelPrice {
            prices: TokenPrices {
                input: money("1"),
                ..TokenPrices::default()
            },
            long: Some((
                1_000,
                TokenPrices {
                    input: money("2"),
                    ..TokenPrices::default()
                },
            )),
        };
        let input = |input| TokenCounts {
            input,
            ..TokenCounts::default()
        };
        assert_eq!(price.cost(input(1_000)), money("0.001"));
        assert_eq!(price.cost(input(1_001)), money("0.002002"));
    }

    #[test]
    fn a_sum_that_is_too_large_stays_at_the_largest_amount() {
        let largest = Money::from_microdollars(u64::MAX);
        assert_eq!(largest.saturating_add(money("1")), largest);
        let prices = TokenPrices {
            input: largest,
            cached_input: largest,
            cache_write: largest,
            output: largest,
        };
        let price = ModelPrice { prices, long: None };
        let tokens = TokenCounts {
            input: u64::MAX,
            cached: u64::MAX,
            cache_write: u64::MAX,
            output: u64::MAX,
        };
        assert_eq!(price.cost(tokens), largest);
    }
}
