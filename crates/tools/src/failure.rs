//! Why a tool could not be bound, as data and as text for the person who must fix it. `bind`
//! decides.

use std::borrow::Cow;
use std::fmt;

use windlass_spec::text::{TextUse, replace_hidden};
use windlass_spec::{Inexpressible, Mismatch, ToolName, Type};

use crate::difference::Difference;

/// Why one tool of an agent could not be bound: every reason that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct BindingFailure {
    /// The specified tool.
    pub tool: ToolName,
    /// All reasons.
    pub reasons: Vec<BindingReason>,
}

impl std::error::Error for BindingFailure {}

/// One reason why an implementation does not match a specification.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BindingReason {
    /// The library has no tool with this name.
    Missing {
        /// The name of the library.
        library: String,
        /// The tools in it with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// The descriptions are not the same.
    DescriptionDiffers {
        /// That of the specification.
        specification: String,
        /// That of the implementation.
        implementation: String,
    },
    /// The schemas of the arguments are not the same.
    SchemaDiffers {
        /// Where they differ.
        differences: Vec<Difference>,
    },
    /// The schemas of the result are not the same.
    ReturnDiffers {
        /// Where they differ.
        differences: Vec<Difference>,
    },
    /// The implementation does not accept all arguments that the specification allows.
    Incompatible {
        /// Where it accepts less.
        mismatches: Vec<Mismatch>,
    },
    /// The implementation may return values that the specification does not allow.
    ReturnIncompatible {
        /// The result type of the specification.
        specification: Type,
        /// The result type of the implementation.
        implementation: Type,
        /// Where the types differ, such as `items[].price`; empty for the whole.
        paths: Vec<String>,
    },
    /// No signature can express a schema of the implementation, so it cannot be checked.
    Undecidable {
        /// Which schema.
        part: SchemaPart,
        /// The parts of it that no signature can express.
        inexpressible: Vec<Inexpressible>,
    },
    /// One of several implementations does not match.
    InVariant {
        /// Its name.
        variant: String,
        /// Why it does not match.
        reason: Box<BindingReason>,
    },
}

impl BindingReason {
    /// Whether it does not prevent the binding by itself: only descriptions differ.
    #[must_use]
    pub fn is_note(&self) -> bool {
        match self {
            Self::DescriptionDiffers { .. } => true,
            Self::SchemaDiffers { differences } | Self::ReturnDiffers { differences } => {
                differences.iter().all(Difference::is_of_descriptions)
            }
            Self::InVariant { reason, .. } => reason.is_note(),
            Self::Missing { .. }
            | Self::Incompatible { .. }
            | Self::ReturnIncompatible { .. }
            | Self::Undecidable { .. } => false,
        }
    }
}

/// One of the two schemas of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaPart {
    /// That of the arguments.
    Parameters,
    /// That of the result.
    Returns,
}

impl fmt::Display for BindingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", one_line(self.tool.as_str()))?;
        for reason in &self.reasons {
            for line in reason.to_string().lines() {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for BindingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { library, nearest } => {
                write!(f, "missing from the library `{}`", one_line(library))?;
                match nearest.split_last() {
                    None => Ok(()),
                    Some((only, [])) => write!(f, "\n  did you mean `{}`?", one_line(only)),
                    Some((last, others)) => write!(
                        f,
                        "\n  did you mean `{}` or `{}`?",
                        one_line(&others.join("`, `")),
                        one_line(last)
                    ),
                }
            }
            Self::DescriptionDiffers {
                specification,
                implementation,
            } => write!(
                f,
                "description differs\n  - specification:  {}\n  + implementation: {}",
                one_line(specification),
                one_line(implementation)
            ),
            Self::InVariant { variant, reason } => {
                write!(f, "variant `{}`: {reason}", one_line(variant))
            }
            Self::SchemaDiffers { differences } => write_list(f, "schema differs", differences),
            Self::ReturnDiffers { differences } => {
                write_list(f, "return schema differs", differences)
            }
            Self::Incompatible { mismatches } => write_list(
                f,
                "does not accept all arguments that the specification allows",
                mismatches,
            ),
            Self::ReturnIncompatible {
                specification,
                implementation,
                paths,
            } => {
                write!(
                    f,
                    "may return values that the specification does not allow\
                     \n  specification:  {specification}\n  implementation: {implementation}"
                )?;
                for path in paths.iter().filter(|path| !path.is_empty()) {
                    write!(f, "\n  at `{}`", one_line(path))?;
                }
                Ok(())
            }
            Self::Undecidable {
                part,
                inexpressible,
            } => {
                let question = match part {
                    SchemaPart::Parameters => {
                        "it accepts all arguments that the specification allows"
                    }
                    SchemaPart::Returns => "it returns only values that the specification allows",
                };
                let title =
                    format!("cannot check whether {question}: no signature can express its schema");
                write_list(f, &title, inexpressible)
            }
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, title: &str, items: &[impl fmt::Display]) -> fmt::Result {
    f.write_str(title)?;
    for item in items {
        write!(f, "\n  {}", one_line(&item.to_string()))?;
    }
    Ok(())
}

/// `text` with its line breaks and other control characters escaped. Implementations are untrusted;
/// their text must neither break the layout nor control a terminal.
fn one_line(text: &str) -> Cow<'_, str> {
    replace_hidden(text, TextUse::Name, |_, hidden, line| {
        line.extend(hidden.chars().flat_map(char::escape_default));
    })
}
