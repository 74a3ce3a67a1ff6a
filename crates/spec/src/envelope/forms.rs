//! The data of a success. It may be any JSON. Three common forms are recognised and typed: a page of
//! results, the answer of a service behind the tool, and the outcome of a batch.
//!
//! A form is recognised only if it fits exactly. Data that only resembles one does not change, because
//! its fields have another meaning: a `total` below the number of results may be a sum of money.

use serde::Serialize;
use serde_json::Value;

use super::Object;

/// The `data` of a success.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SuccessData {
    /// Any JSON.
    Plain(Value),
    /// A page of results.
    Page(Page),
    /// The answer of a service behind the tool.
    Nested(Nested),
    /// The outcome of a batch.
    Batch(Batch),
}

/// A page of results, of which there may be more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    total: u64,
    results: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<Value>,
}

impl Page {
    /// A page with all results.
    #[must_use]
    pub fn new(results: Vec<Value>) -> Self {
        Self {
            total: results.len() as u64,
            results,
            aggregation: None,
        }
    }

    /// The same page with the total number of results, at least the number on the page.
    #[must_use]
    pub fn of_total(mut self, total: u64) -> Self {
        self.total = total.max(self.results.len() as u64);
        self
    }

    /// The same page with an aggregation of the results.
    #[must_use]
    pub fn with_aggregation(mut self, aggregation: impl Into<Value>) -> Self {
        self.aggregation = Some(aggregation.into());
        self
    }

    /// The total number of results.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The results on this page.
    #[must_use]
    pub fn results(&self) -> &[Value] {
        &self.results
    }

    /// The aggregation of the results.
    #[must_use]
    pub const fn aggregation(&self) -> Option<&Value> {
        self.aggregation.as_ref()
    }

    fn take_from(object: &mut Object) -> Option<Self> {
        let total = object.get("total")?.as_u64()?;
        let length = object.get("results")?.as_array()?.len() as u64;
        if total < length {
            return None;
        }
        object.shift_remove("total");
        Some(Self {
            total,
            results: take_list(object, "results")?,
            aggregation: object.shift_remove("aggregation"),
        })
    }
}

/// The answer of a service behind the tool: a result and its metadata.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nested {
    /// The result.
    pub result: Value,
    /// The metadata.
    pub metadata: Object,
}

impl Nested {
    fn take_from(object: &mut Object) -> Option<Self> {
        object.get("result")?;
        object.get("metadata")?.as_object()?;
        let Some(Value::Object(metadata)) = object.shift_remove("metadata") else {
            return None;
        };
        Some(Self {
            result: object.shift_remove("result")?,
            metadata,
        })
    }
}

/// The outcome of a batch. The number of processed items is the sum of successes and failures.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(into = "JsonBatch")]
pub struct Batch {
    /// The number of successes.
    pub successful: u32,
    /// The number of failures.
    pub failed: u32,
    /// The results.
    pub results: Vec<Value>,
}

/// The JSON form of a batch.
#[derive(Serialize)]
struct JsonBatch {
    total_processed: u64,
    successful: u32,
    failed: u32,
    results: Vec<Value>,
}

impl From<Batch> for JsonBatch {
    fn from(batch: Batch) -> Self {
        Self {
            total_processed: batch.total_processed(),
            successful: batch.successful,
            failed: batch.failed,
            results: batch.results,
        }
    }
}

impl Batch {
    /// The number of processed items.
    #[must_use]
    pub const fn total_processed(&self) -> u64 {
        self.successful as u64 + self.failed as u64
    }

    fn take_from(object: &mut Object) -> Option<Self> {
        let count = |name: &str| object.get(name)?.as_u64();
        let total = count("total_processed")?;
        let successful = u32::try_from(count("successful")?).ok()?;
        let failed = u32::try_from(count("failed")?).ok()?;
        object.get("results")?.as_array()?;
        if u64::from(successful) + u64::from(failed) != total {
            return None;
        }
        for name in ["total_processed", "successful", "failed"] {
            object.shift_remove(name);
        }
        Some(Self {
            successful,
            failed,
            results: take_list(object, "results")?,
        })
    }
}

impl SuccessData {
    /// The data in the form that it fits, and its unknown fields.
    pub(super) fn recognised(self) -> (Self, Object) {
        let Self::Plain(Value::Object(mut object)) = self else {
            return (self, Object::new());
        };
        // A batch also has results, so it is tried before a page.
        if let Some(batch) = Batch::take_from(&mut object) {
            (Self::Batch(batch), object)
        } else if let Some(page) = Page::take_from(&mut object) {
            (Self::Page(page), object)
        } else if let Some(nested) = Nested::take_from(&mut object) {
            (Self::Nested(nested), object)
        } else {
            (Self::Plain(Value::Object(object)), Object::new())
        }
    }
}

impl<T: Into<Value>> From<T> for SuccessData {
    fn from(value: T) -> Self {
        Self::Plain(value.into())
    }
}

impl From<Page> for SuccessData {
    fn from(page: Page) -> Self {
        Self::Page(page)
    }
}

impl From<Nested> for SuccessData {
    fn from(nested: Nested) -> Self {
        Self::Nested(nested)
    }
}

impl From<Batch> for SuccessData {
    fn from(batch: Batch) -> Self {
        Self::Batch(batch)
    }
}

fn take_list(object: &mut Object, name: &str) -> Option<Vec<Value>> {
    match object.shift_remove(name)? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}
