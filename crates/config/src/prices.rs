//! What models cost: the list that ships, and the prices of a configuration over it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use windlass_spec::{ModelPrice, Money, NotMoney, TokenPrices};

use crate::tree::{Content, Node};

/// The list prices of providers, with the page and the day they are from.
const SHIPPED: &str = include_str!("prices.toml");

static LIST: LazyLock<BTreeMap<String, ModelPrice>> = LazyLock::new(shipped);

/// The day of the shipped prices of a provider, for people who compare them with the provider's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceSource {
    /// The provider.
    pub provider: String,
    /// The page.
    pub url: String,
    /// The day they are from, as `YYYY-MM-DD`.
    pub as_of: String,
}

/// The prices of models by name, such as `OpenAI/gpt-4.1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceTable {
    configured: Arc<BTreeMap<String, ModelPrice>>,
}

impl PriceTable {
    /// The table with these prices over the shipped ones.
    pub(crate) fn of(tree: &Node) -> Self {
        let entries = tree.entries(&["prices"]);
        let configured = entries.filter_map(|(name, node)| Some((name.to_owned(), price(node)?)));
        Self {
            configured: Arc::new(configured.collect()),
        }
    }

    /// The price of a model; `None` if it is not known. A model with a date at its end has the price of the model
    /// without it, if it has none of its own.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<ModelPrice> {
        let found = |name: &str| {
            let configured = self.configured.get(name);
            configured.or_else(|| LIST.get(name)).copied()
        };
        found(model).or_else(|| found(without_date(model)?))
    }

    /// The price of a model that the configuration sets itself.
    #[must_use]
    pub fn configured(&self, model: &str) -> Option<ModelPrice> {
        self.configured.get(model).copied()
    }

    /// The models with a shipped price, in order.
    pub fn shipped() -> impl Iterator<Item = (&'static str, &'static ModelPrice)> {
        LIST.iter().map(|(name, price)| (name.as_str(), price))
    }

    /// Where the shipped prices are from.
    #[must_use]
    pub fn sources() -> Vec<PriceSource> {
        let table = toml::Table::from_str(SHIPPED).unwrap_or_default();
        let text = |table: &toml::Value, key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let providers = table.iter().map(|(provider, table)| PriceSource {
            provider: provider.clone(),
            url: text(table, "source"),
            as_of: text(table, "as_of"),
        });
        providers.collect()
    }
}

/// A model's name without a date such as `-2025-04-14` or `-20250929`, or `-latest`.
fn without_date(model: &str) -> Option<&str> {
    if let Some(name) = model.strip_suffix("-latest") {
        return Some(name);
    }
    [10, 8].into_iter().find_map(|length| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(length)?)?;
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        let is_date = digits == 8
            && date
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-');
        name.strip_suffix('-').filter(|_| is_date)
    })
}

/// The price of a table; `None` if one of its prices is missing.
pub(crate) fn price(node: &Node) -> Option<ModelPrice> {
    let above = node.get("long_above").and_then(Node::integer);
    let above = above.and_then(|above| u64::try_from(above).ok());
    let long = node.get("long").and_then(token_prices);
    Some(ModelPrice {
        prices: token_prices(node)?,
        long: above.zip(long),
    })
}

fn token_prices(node: &Node) -> Option<TokenPrices> {
    let of = |key: &str| node.get(key).and_then(dollars);
    let input = of("input")?;
    Some(TokenPrices {
        input,
        cached_input: of("cached_input").unwrap_or(input),
        cache_write: of("cache_write").unwrap_or(input),
        output: of("output")?,
    })
}

/// An amount, written as a number or as text.
pub(crate) fn dollars(node: &Node) -> Option<Money> {
    let Content::Scalar(value) = &node.content else {
        return None;
    };
    read_dollars(value).ok()
}

/// An amount as a file has it. A number with a point is written out, because its JSON may have an exponent.
pub(crate) fn read_dollars(value: &Value) -> Result<Money, NotMoney> {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => number.to_string().parse(),
        None => match value.as_str() {
            Some(text) => text.parse(),
            None => value.to_string().parse(),
        },
    }
}

/// The shipped list. Its texts are checked by a test.
fn shipped() -> BTreeMap<String, ModelPrice> {
    let table = toml::Table::from_str(SHIPPED).unwrap_or_default();
    let mut list = BTreeMap::new();
    for (provider, of_provider) in &table {
        let models = of_provider.get("models").and_then(toml::Value::as_table);
        for (id, entry) in models.into_iter().flatten() {
            if let Some(price) = shipped_price(entry) {
                list.insert(format!("{provider}/{id}"), price);
            }
        }
    }
    list
}

fn shipped_price(entry: &toml::Value) -> Option<ModelPrice> {
    let above = entry.get("long_above").and_then(toml::Value::as_integer);
    let above = above.and_then(|above| u64::try_from(above).ok());
    let long = entry.get("long").and_then(shipped_prices);
    Some(ModelPrice {
        prices: shipped_prices(entry)?,
        long: above.zip(long),
    })
}

fn shipped_prices(entry: &toml::Value) -> Option<TokenPrices> {
    let of = |key: &str| entry.get(key)?.as_str()?.parse::<Money>().ok();
    let input = of("input")?;
    Some(TokenPrices {
        input,
        cached_input: of("cached_input").unwrap_or(input),
        cache_write: of("cache_write").unwrap_or(input),
        output: of("output")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_price_is_read_and_has_its_source_and_day() {
        let table = toml::Table::from_str(SHIPPED).unwrap();
        let mut count = 0;
        for (provider, of_provider) in &table {
            for (id, entry) in of_provider["models"].as_table().unwrap() {
                count += 1;
                let name = format!("{provider}/{id}");
                assert_eq!(
                    name.parse::<windlass_spec::Model>().unwrap().to_string(),
                    name
                );
                let price = LIST.get(&name).unwrap_or_else(|| panic!("{name}"));
                assert!(price.prices.cached_input <= price.prices.input, "{name}");
                assert!(price.prices.output >= price.prices.input, "{name}");
                assert!(!price.is_free(), "{name}");
                let mut fields = entry.as_table().unwrap().keys();
                let known = [
                    "input",
                    "cached_input",
                    "cache_write",
                    "output",
                    "long_above",
                    "long",
                ];
                assert!(
                    fields.all(|field| known.contains(&field.as_str())),
                    "{name}"
                );
                assert_eq!(entry.get("long").is_some(), price.long.is_some(), "{name}");
            }
        }
        assert_eq!(count, LIST.len());
        for source in PriceTable::sources() {
            assert!(source.url.starts_with("https://"), "{source:?}");
            let parts: Vec<&str> = source.as_of.split('-').collect();
            assert_eq!(
                parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
                [4, 2, 2]
            );
        }
    }

    #[test]
    fn a_model_with_a_date_has_the_price_of_the_model_and_another_model_has_none() {
        let table = PriceTable::default();
        let price = table.price("OpenAI/gpt-4.1").unwrap();
        assert_eq!(table.price("OpenAI/gpt-4.1-2025-04-14"), Some(price));
        assert!(
            table
                .price("Anthropic/claude-sonnet-4-5-20250929")
                .is_some()
        );
        for unknown in [
            "OpenAI/gpt-4.1-turbo",
            "OpenAI/gpt-4.1-2025",
            "gpt-4.1",
            "Ollama/gpt-4.1",
            "-20250929",
            "é-2025-04-14",
            "",
        ] {
            assert_eq!(table.price(unknown), None, "{unknown}");
        }
    }
}
