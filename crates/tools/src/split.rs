//! Several implementations of one tool: each principal is assigned one of them and keeps it. The assignment
//! depends only on the principal and on the names of the experiment and the tool, so every process computes
//! the same one and nothing is stored.

use std::sync::Arc;

use windlass_core::run::Variant as AssignedVariant;
use windlass_spec::{NonEmptyText, ToolName};

use crate::http::HttpMethod;
use crate::tool::{CallContext, Handler, Tool};

/// One of several implementations.
#[derive(Debug, Clone)]
pub struct ToolVariant {
    /// Its name, as it is recorded.
    pub name: NonEmptyText,
    /// Its share of the principals, relative to the other weights.
    pub weight: f64,
    /// The implementation.
    pub tool: Tool,
}

/// Why principals cannot be split between implementations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// There are fewer than two variants.
    #[error("a split has at least two variants")]
    TooFew,
    /// Two variants have the same name.
    #[error("there are two variants `{0}`")]
    SameName(String),
    /// A weight is negative or not finite.
    #[error("the weight of `{0}` is not a number of at least 0")]
    Weight(String),
    /// All weights are 0.
    #[error("no variant has a weight above 0")]
    NoWeight,
}

/// Implementations of one tool, and how principals are split between them.
#[derive(Debug, Clone)]
pub struct Split {
    experiment: NonEmptyText,
    variants: Vec<ToolVariant>,
    total: f64,
}

impl Split {
    /// Splits principals between these variants.
    ///
    /// # Errors
    /// If there are fewer than two, two have the same name, or the weights are not valid.
    pub fn new(experiment: NonEmptyText, variants: Vec<ToolVariant>) -> Result<Self, SplitError> {
        if variants.len() < 2 {
            return Err(SplitError::TooFew);
        }
        for (index, variant) in variants.iter().enumerate() {
            let mut earlier = variants.iter().take(index);
            if earlier.any(|other| other.name == variant.name) {
                return Err(SplitError::SameName(variant.name.to_string()));
            }
            if !variant.weight.is_finite() || variant.weight < 0.0 {
                return Err(SplitError::Weight(variant.name.to_string()));
            }
        }
        let total: f64 = variants.iter().map(|variant| variant.weight).sum();
        if total <= 0.0 {
            return Err(SplitError::NoWeight);
        }
        Ok(Self {
            experiment,
            variants,
            total,
        })
    }

    /// The name of the experiment.
    #[must_use]
    pub fn experiment(&self) -> &str {
        self.experiment.as_str()
    }

    /// The implementations.
    #[must_use]
    pub fn variants(&self) -> &[ToolVariant] {
        &self.variants
    }

    /// The variant that a principal is assigned for a tool.
    #[must_use]
    pub fn variant_of(&self, tool: &ToolName, tenant: &str, principal: &str) -> &ToolVariant {
        let position = hash_position(&[self.experiment.as_str(), tool.as_str(), tenant, principal]);
        let mut left = position * self.total;
        let mut chosen = &self.variants[0];
        for variant in self.variants.iter().filter(|variant| variant.weight > 0.0) {
            chosen = variant;
            left -= variant.weight;
            if left < 0.0 {
                break;
            }
        }
        chosen
    }

    fn named(&self, name: &str) -> Option<&ToolVariant> {
        self.variants
            .iter()
            .find(|variant| variant.name.as_str() == name)
    }

    fn assigned(&self, variant: &ToolVariant) -> AssignedVariant {
        AssignedVariant {
            experiment: self.experiment.to_string(),
            name: variant.name.to_string(),
            // At most a million, so the conversion is exact.
            share_millionths: (variant.weight / self.total * 1e6).round() as u32,
        }
    }
}

impl Tool {
    /// Makes this tool run one of several implementations, always the same for each principal. It keeps its own
    /// description and schema. Its attributes are the strictest of all variants.
    #[must_use]
    pub fn split(mut self, split: Split) -> Self {
        let split = Arc::new(split);
        let tools = || split.variants.iter().map(|variant| &variant.tool);
        self.cleans_up = tools().any(|tool| tool.cleans_up);
        self.http_method = riskiest(tools().map(|tool| tool.http_method));
        for own in tools().filter_map(|tool| tool.attributes.as_ref()) {
            self.attributes = Some(match &self.attributes {
                Some(attributes) => Arc::new(attributes.merged_with(own)),
                None => Arc::clone(own),
            });
        }
        let descriptions: Vec<String> = split
            .variants
            .iter()
            .map(|variant| {
                let runs = variant.tool.implementation().unwrap_or("a function");
                format!("{} (weight {}): {runs}", variant.name, variant.weight)
            })
            .collect();
        self.implementation =
            Some(format!("{} [{}]", split.experiment, descriptions.join("; ")).into());
        self.handler = handler(&split, self.name.clone());
        self.split = Some(split);
        self
    }

    /// The split between implementations, if there are several.
    #[must_use]
    pub fn splits(&self) -> Option<&Split> {
        self.split.as_deref()
    }

    /// The implementation that a principal is assigned, if there are several. A call keeps the one it began with
    /// as long as a variant of that name exists.
    #[must_use]
    pub fn assigned(
        &self,
        tenant: &str,
        principal: &str,
        began_with: Option<&AssignedVariant>,
    ) -> Option<AssignedVariant> {
        let split = self.split.as_ref()?;
        let kept = began_with
            .filter(|began| began.experiment == split.experiment.as_str())
            .filter(|began| split.named(&began.name).is_some());
        Some(
            kept.cloned()
                .unwrap_or_else(|| split.assigned(split.variant_of(&self.name, tenant, principal))),
        )
    }
}

/// Runs the implementation that was assigned to the call, or else to its principal.
fn handler(split: &Arc<Split>, tool: ToolName) -> Handler {
    let split = Arc::clone(split);
    Arc::new(move |arguments, context: CallContext| {
        let named = context
            .variant
            .as_deref()
            .and_then(|name| split.named(name));
        let (tenant, principal) = match &context.caller {
            Some(caller) => (caller.tenant.as_str(), caller.principal.as_str()),
            None => ("", ""),
        };
        let variant = named.unwrap_or_else(|| split.variant_of(&tool, tenant, principal));
        (variant.tool.handler)(arguments, context)
    })
}

/// The method for assessing the risk of the tool: the riskiest of all variants. `None` if not all are requests and
/// none is riskier than GET.
fn riskiest(methods: impl Iterator<Item = Option<HttpMethod>>) -> Option<HttpMethod> {
    let methods: Vec<Option<HttpMethod>> = methods.collect();
    let order = [
        HttpMethod::Delete,
        HttpMethod::Patch,
        HttpMethod::Put,
        HttpMethod::Post,
    ];
    let risky = order
        .into_iter()
        .find(|method| methods.contains(&Some(*method)));
    let all_get = methods
        .iter()
        .all(|method| *method == Some(HttpMethod::Get));
    risky.or(all_get.then_some(HttpMethod::Get))
}

/// Hashes these words to a number between 0 and 1: FNV-1a over them, each ended by a zero byte, then mixed so that
/// similar words are far apart. It must never change, because that would reassign all principals.
fn hash_position(words: &[&str]) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
