//! What everybody knows and no text says: function words, number words, units, currencies, places,
//! languages. Small closed lists, sorted by what they are for; nothing about any particular tool.

pub(crate) mod currencies;
pub(crate) mod places;
pub(crate) mod units;
pub(crate) mod words;
