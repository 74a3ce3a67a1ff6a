//! Values as data: the content of a property, an annotation, an array or a map.

use std::borrow::Cow;

use crate::diagnostic::Span;
use crate::scan::Scanner;
use crate::token::TokenKind;
use crate::tree::{NodeKind, SyntaxTree};
use crate::view::{Name, Property, quoted_text};

/// A value and its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Value<'t> {
    /// The value.
    pub data: ValueData<'t>,
    /// Its place in the text.
    pub span: Span,
}

/// The data of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueData<'t> {
    /// A quoted, backticked or fenced text, escapes resolved.
    Text(Cow<'t, str>),
    /// A bare word.
    Symbol(&'t str),
    /// `true` or `false`.
    Boolean(bool),
    /// A number as written.
    Number(Number<'t>),
    /// A text with a tag that gives its type.
    Tagged {
        /// The tag.
        tag: &'t str,
        /// The text, escapes resolved.
        text: Cow<'t, str>,
    },
    /// A range; a missing bound is open.
    Range {
        /// The lower bound.
        lower: Option<Number<'t>>,
        /// The upper bound.
        upper: Option<Number<'t>>,
    },
    /// An array of scalars.
    Array(Vec<Value<'t>>),
    /// A map of scalars and arrays.
    Map(Vec<(Name<'t>, Value<'t>)>),
}

/// A number as written, without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number<'t> {
    /// `42`
    Integer(&'t str),
    /// `3.14`
    Decimal(&'t str),
    /// `0xFF`
    Hexadecimal(&'t str),
    /// `017`
    Octal(&'t str),
    /// `12kg`: the number and the unit.
    Measurement(&'t str, &'t str),
}

impl Number<'_> {
    /// The value as a whole number, if it is one and fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Integer(text) => text.parse().ok(),
            Self::Hexadecimal(text) => i64::from_str_radix(text.get(2..)?, 16).ok(),
            Self::Octal(text) => i64::from_str_radix(text, 8).ok(),
            Self::Decimal(_) | Self::Measurement(..) => None,
        }
    }

    /// The value as a floating-point number, unless it has a unit.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Decimal(text) | Self::Integer(text) => text.parse().ok(),
            Self::Hexadecimal(_) | Self::Octal(_) => self.as_i64().map(|value| value as f64),
            Self::Measurement(..) => None,
        }
    }
}

impl<'t> ValueData<'t> {
    /// The kind of the value, as a noun phrase for messages.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Symbol(_) => "a symbol",
            Self::Boolean(_) => "a boolean",
            Self::Number(Number::Integer(_) | Number::Hexadecimal(_) | Number::Octal(_)) => {
                "an integer"
            }
            Self::Number(Number::Decimal(_)) => "a decimal number",
            Self::Number(Number::Measurement(..)) => "a measurement",
            Self::Tagged { .. } => "a tagged text",
            Self::Range { .. } => "a range",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
        }
    }

    /// The text of a text value or of a symbol.
    #[must_use]
    pub fn as_word(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Symbol(word) => Some(word),
            _ => None,
        }
    }
}

impl<'t> Value<'t> {
    /// Reads the value node at `index`; `None` if an error left nothing there.
    pub(crate) fn read(tree: &'t SyntaxTree<'t>, index: usize) -> Option<Self> {
        let span = tree.node_span(index);
        let data = match tree.nodes[index].kind {
            NodeKind::Scalar => scalar(tree, tree.direct_tokens(index).next()?)?,
            NodeKind::Tagged => {
                let mut tokens = tree.direct_tokens(index);
                ValueData::Tagged {
                    tag: tree.token_text(tokens.next()?),
                    text: quoted_text(tree.token_text(tokens.next()?)),
                }
            }
            NodeKind::Range => range(tree, index),
            NodeKind::Array => ValueData::Array(
                tree.children(index)
                    .filter_map(|child| Self::read(tree, child))
                    .collect(),
            ),
            NodeKind::Map => ValueData::Map(
                tree.children(index)
                    .filter_map(|child| {
                        let entry = Property { tree, index: child };
                        Some((entry.key()?, entry.value()?))
                    })
                    .collect(),
            ),
            _ => return None,
        };
        Some(Self { data, span })
    }
}

fn scalar<'t>(tree: &'t SyntaxTree<'t>, token: usize) -> Option<ValueData<'t>> {
    let raw = tree.token_text(token);
    Some(match tree.token_kind(token)? {
        TokenKind::Symbol => ValueData::Symbol(raw),
        TokenKind::Boolean => ValueData::Boolean(raw == "true"),
        TokenKind::SingleQuoted | TokenKind::DoubleQuoted | TokenKind::Backticked => {
            ValueData::Text(quoted_text(raw))
        }
        TokenKind::Fenced => fenced(raw)?,
        _ => ValueData::Number(number(tree, token)?),
    })
}

fn fenced(raw: &str) -> Option<ValueData<'_>> {
    let found = Scanner::new(raw.as_bytes()).fenced(0).ok()?;
    let text = Cow::Borrowed(raw.get(found.text.0..found.text.1)?);
    Some(match found.tag {
        Some((start, end)) => ValueData::Tagged {
            tag: raw.get(start..end)?,
            text,
        },
        None => ValueData::Text(text),
    })
}

fn number<'t>(tree: &'t SyntaxTree<'t>, token: usize) -> Option<Number<'t>> {
    let raw = tree.token_text(token);
    Some(match tree.token_kind(token)? {
        TokenKind::Integer => Number::Integer(raw),
        TokenKind::Decimal => Number::Decimal(raw),
        TokenKind::Hexadecimal => Number::Hexadecimal(raw),
        TokenKind::Octal => Number::Octal(raw),
        TokenKind::Measurement => {
            let unit = raw
                .find(|c: char| c.is_ascii_alphabetic())
                .unwrap_or(raw.len());
            let (number, unit) = raw.split_at(unit);
            Number::Measurement(number, unit)
        }
        _ => return None,
    })
}

fn range<'t>(tree: &'t SyntaxTree<'t>, index: usize) -> ValueData<'t> {
    let (mut lower, mut upper) = (None, None);
    let mut after_dots = false;
    for token in tree.direct_tokens(index) {
        match tree.token_kind(token) {
            Some(TokenKind::DotDot | TokenKind::DotDotDot) => after_dots = true,
            _ if after_dots => upper = number(tree, token),
            _ => lower = number(tree, token),
        }
    }
    ValueData::Range { lower, upper }
}
