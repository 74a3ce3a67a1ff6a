//! Lists: one page of a list, with where the next one begins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many items a page has if the caller does not say.
const DEFAULT: u32 = 50;

/// The most items of a page.
pub(crate) const MAX: u32 = 200;

/// A page of a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Page<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// The value of `after` for the next page; `null` after the last item.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// A page of `items`, which has one more than `limit` if there is a next page. `cursor` is the cursor of an item.
    pub(crate) fn new<I>(
        mut items: Vec<I>,
        limit: usize,
        cursor: impl FnOnce(&I) -> String,
        shape: impl FnMut(I) -> T,
    ) -> Self {
        let next = match items.len() > limit {
            true => {
                items.truncate(limit);
                items.last().map(cursor)
            }
            false => None,
        };
        Self {
            items: items.into_iter().map(shape).collect(),
            next,
        }
    }

    /// The only page of a short list.
    pub(crate) fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// The number of items of a page.
pub(crate) fn limit(asked: Option<u32>) -> u32 {
    asked.unwrap_or(DEFAULT).clamp(1, MAX)
}

/// The query of a list without filters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    pub(crate) limit: Option<u32>,
    /// The `next` of the page before.
    pub(crate) after: Option<String>,
}
