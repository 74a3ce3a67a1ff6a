//! General knowledge as small closed lists: function words, number words, units, currencies, places and
//! languages. Nothing is specific to a tool.

pub(crate) mod currencies;
pub(crate) mod places;
pub(crate) mod units;
pub(crate) mod words;
