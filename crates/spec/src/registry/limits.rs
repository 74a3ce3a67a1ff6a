//! Rate limits: the number of calls allowed per window. A limit can be lowered but never raised
//! by another.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::words::UnknownWord;

crate::word_set! {
    /// The window in which a limit counts calls.
    Window, "window" {
        /// Calls started within a second.
        PerSecond = "per_second",
        /// Calls started within a minute.
        PerMinute = "per_minute",
        /// Calls started within an hour.
        PerHour = "per_hour",
        /// Calls started within a day.
        PerDay = "per_day",
        /// Calls running at the same time.
        Concurrent = "concurrent",
    }
}

impl Window {
    /// The length of the window; `None` for concurrent calls.
    #[must_use]
    pub const fn seconds(self) -> Option<u32> {
        match self {
            Self::PerSecond => Some(1),
            Self::PerMinute => Some(60),
            Self::PerHour => Some(60 * 60),
            Self::PerDay => Some(24 * 60 * 60),
            Self::Concurrent => None,
        }
    }
}

/// The number of allowed calls by window. A window that is not listed has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, i64>", into = "BTreeMap<Window, u32>")]
pub struct RateLimits(BTreeMap<Window, NonZeroU32>);

/// Why rate limits are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitError {
    /// A window that does not exist.
    #[error(transparent)]
    Window(#[from] UnknownWord),
    /// A limit that is not a positive integer.
    #[error("{window}: a rate limit must be a positive integer up to 4294967295, not {limit}")]
    NotPositive {
        /// The window.
        window: Window,
        /// The invalid limit.
        limit: i64,
    },
}

impl RateLimits {
    /// No limits.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The same limits with this one set.
    #[must_use]
    pub fn with(mut self, window: Window, limit: NonZeroU32) -> Self {
        self.set(window, limit);
        self
    }

    /// Sets one limit.
    pub fn set(&mut self, window: Window, limit: NonZeroU32) {
        self.0.insert(window, limit);
    }

    /// The limit in a window, if there is one.
    #[must_use]
    pub fn get(&self, window: Window) -> Option<NonZeroU32> {
        self.0.get(&window).copied()
    }

    /// Whether there is no limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every limit, the shortest window first.
    pub fn iter(&self) -> impl Iterator<Item = (Window, NonZeroU32)> + '_ {
        self.0.iter().map(|(&window, &limit)| (window, limit))
    }

    /// The same limits, lowered to `ceiling`: in each window the lower of the two limits, or the only
    /// one.
    #[must_use]
    pub fn lowered_to(&self, ceiling: &Self) -> Self {
        let mut lowered = self.clone();
        for (window, limit) in ceiling.iter() {
            let kept = self.get(window).map_or(limit, |own| own.min(limit));
            lowered.set(window, kept);
        }
        lowered
    }

    /// The same limits, none above `ceiling`. A window without a limit stays without one.
    #[must_use]
    pub fn capped_at(&self, ceiling: &Self) -> Self {
        let capped = self.iter().map(|(window, own)| {
            let limit = ceiling.get(window).map_or(own, |most| own.min(most));
            (window, limit)
        });
        Self(capped.collect())
    }

    /// These limits, replaced by those of `other` in the windows that `other` lists.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        other.iter().fold(self.clone(), |limits, (window, limit)| {
            limits.with(window, limit)
        })
    }
}

impl TryFrom<BTreeMap<String, i64>> for RateLimits {
    type Error = RateLimitError;

    fn try_from(raw: BTreeMap<String, i64>) -> Result<Self, RateLimitError> {
        let mut limits = Self::none();
        for (window, limit) in raw {
            let window: Window = window.parse()?;
            let positive = u32::try_from(limit).ok().and_then(NonZeroU32::new);
            limits.set(
                window,
                positive.ok_or(RateLimitError::NotPositive { window, limit })?,
            );
        }
        Ok(limits)
    }
}

impl From<RateLimits> for BTreeMap<Window, u32> {
    fn from(limits: RateLimits) -> Self {
        limits
            .iter()
            .map(|(window, limit)| (window, limit.get()))
            .collect()
    }
}

impl JsonSchema for RateLimits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RateLimits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "enum": Window::ALL.map(Window::as_str).as_slice() },
            "additionalProperties": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
        })
    }
}
