//! What a success can hold. Any JSON will do; three forms that many tools share are recognised and
//! typed: a page of results, the answer of a service behind the tool, and the outcome of a batch.
//!
//! A form is recognised only where it fits exactly. Data that merely resembles one is left as it
//! is, for it belongs to the tool: a `total` below the number of results may be a sum of money.

use serde::Serialize;
use serde_json::Value;

use super::Object;

/// The `data` of a success.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SuccessData {
    /// Anything.
    Plain(Value),
    /// Several results.
    Page(Page),
    /// The answer of a service behind the tool.
    Nested(Nested),
    /// How many of a batch succeeded.
    Batch(Batch),
}

/// Several results, perhaps of more that exist.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    total: u64,
    results: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<Value>,
}

impl Page {
    /// All results there are.
    #[must_use]
    pub fn new(results: Vec<Value>) -> Self {
        Self {
            total: results.len() as u64,
            results,
            aggregation: None,
        }
    }

    /// The same results, of `total` that exist; never fewer than are here.
    #[must_use]
    pub fn of_total(mut self, total: u64) -> Self {
        self.total = total.max(self.results.len() as u64);
        self
    }

    /// The same results with what they amount to.
    #[must_use]
    pub fn with_aggregation(mut self, aggregation: impl Into<Value>) -> Self {
        self.aggregation = Some(aggregation.into());
        self
    }

    /// How many results exist.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The results that are here.
    #[must_use]
    pub fn results(&self) -> &[Value] {
        &self.results
    }

    /// What the results amount to.
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

/// The answer of a service behind the tool: what was asked for, and what the service says about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nested {
    /// What was asked for.
    pub result: Value,
    /// What the service says about it.
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

/// How a batch went. What was processed is what succeeded and what failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(into = "WrittenBatch")]
pub struct Batch {
    /// How many succeeded.
    pub successful: u32,
    /// How many failed.
    pub failed: u32,
    /// What came of them.
    pub results: Vec<Value>,
}

/// The batch as JSON has it.
#[derive(Serialize)]
struct WrittenBatch {
    total_processed: u64,
    successful: u32,
    failed: u32,
    results: Vec<Value>,
}

impl From<Batch> for WrittenBatch {
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
    /// How many were processed.
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
    /// The form in which the data fits, and what stands beside it.
    pub(super) fn recognised(self) -> (Self, Object) {
        let Self::Plain(Value::Object(mut object)) = self else {
            return (self, Object::new());
        };
        // A batch also has results, so it is looked for before a page.
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
