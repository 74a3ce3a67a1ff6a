//! Types for reading the events of providers. They borrow from the event and keep only what is used. Texts
//! and counts of an unexpected type are absent, because servers differ in what they leave out.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The most items of a list in one event. An item takes more memory than the three bytes that it needs in
/// the event.
const MOST_ITEMS: usize = 4096;

/// A text, or something else of type `T`.
#[derive(Debug, Default)]
pub(super) enum TextOr<'a, T> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Other(T),
}

/// A text, if it is one.
pub(super) type Text<'a> = TextOr<'a, IgnoredAny>;

impl<T> TextOr<'_, T> {
    /// The text; empty if there is none.
    pub(super) fn as_str(&self) -> &str {
        self.text().unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Other(_) => None,
        }
    }

    pub(super) fn other(self) -> Option<T> {
        match self {
            Self::Other(other) => Some(other),
            Self::Nothing | Self::Text(_) => None,
        }
    }

    /// Whether there is anything but null and an empty text.
    pub(super) fn is_present(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Text(text) => !text.is_empty(),
            Self::Other(_) => true,
        }
    }
}

/// A count, if it is one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

/// The items of a list.
#[derive(Debug)]
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextVisitor<T> {
    type Value = TextOr<'de, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextOr::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOr::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(TextOr::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(TextOr::Nothing)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(TextOr::Nothing)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(TextOr::Nothing)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(TextOr::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(items)).map(TextOr::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(TextOr::Other)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for TextOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
        let is_count = (0.0..1e15).contains(&count);
        Ok(Count(is_count.then_some(count as u64)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Count, A::Error> {
        IgnoredAny::deserialize(SeqAccessDeserializer::new(items)).map(|_| Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Count, A::Error> {
        IgnoredAny::deserialize(MapAccessDeserializer::new(fields)).map(|_| Count(None))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Items<T>, E> {
        Ok(Items::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            if items.len() == MOST_ITEMS {
                return Err(A::Error::custom("a list has too many items"));
            }
            items.push(item);
        }
        Ok(Items(items))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor(PhantomData))
    }
}
