//! Why a tool could not be bound, as data and as text for the person who must put it right. Deciding
//! is not done here.

use std::borrow::Cow;
use std::fmt;

use windlass_spec::text::{TextUse, replace_hidden};
use windlass_spec::{Inexpressible, Mismatch, ToolName, Type};

use crate::difference::Difference;

/// Why one tool of an agent could not be bound: every reason that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct BindingFailure {
    /// The tool that is specified.
    pub tool: ToolName,
    /// What stands in the way.
    pub reasons: Vec<Reason>,
}

impl std::error::Error for BindingFailure {}

/// One thing that stands between a specification and an implementation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The library has no tool of that name.
    Missing {
        /// The name of the library.
        library: String,
        /// The tools in it whose names are like it, the most alike first.
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
    /// The implementation does not take all that the specification allows.
    Incompatible {
        /// Where it takes less.
        mismatches: Vec<Mismatch>,
    },
    /// The implementation may return what the specification does not promise.
    ReturnIncompatible {
        /// What the specification promises.
        specification: Type,
        /// What the implementation returns.
        implementation: Type,
        /// Where it may return something else, such as `items[].price`; empty for the whole.
        paths: Vec<String>,
    },
    /// A schema of the implementation says what no signature can say, so nothing is known.
    CannotTell {
        /// Which schema.
        part: SchemaPart,
        /// What in it no signature can say.
        inexpressible: Vec<Inexpressible>,
    },
    /// One of several implementations stands in the way.
    OfVariant {
        /// Its name.
        variant: String,
        /// Why.
        reason: Box<Reason>,
    },
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

impl fmt::Display for Reason {
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
            Self::OfVariant { variant, reason } => {
                write!(f, "variant `{}`: {reason}", one_line(variant))
            }
            Self::SchemaDiffers { differences } => listed(f, "schema differs", differences),
            Self::ReturnDiffers { differences } => listed(f, "return schema differs", differences),
            Self::Incompatible { mismatches } => listed(
                f,
                "does not take all that the specification allows",
                mismatches,
            ),
            Self::ReturnIncompatible {
                specification,
                implementation,
                paths,
            } => {
                write!(
                    f,
                    "may return what the specification does not promise\
                     \n  specification:  {specification}\n  implementation: {implementation}"
                )?;
                for path in paths.iter().filter(|path| !path.is_empty()) {
                    write!(f, "\n  at `{}`", one_line(path))?;
                }
                Ok(())
            }
            Self::CannotTell {
                part,
                inexpressible,
            } => {
                let question = match part {
                    SchemaPart::Parameters => "it takes all that the specification allows",
                    SchemaPart::Returns => "it returns only what the specification promises",
                };
                let title = format!(
                    "cannot tell whether {question}: no signature can say what the schema says"
                );
                listed(f, &title, inexpressible)
            }
        }
    }
}

fn listed(f: &mut fmt::Formatter<'_>, title: &str, items: &[impl fmt::Display]) -> fmt::Result {
    f.write_str(title)?;
    for item in items {
        write!(f, "\n  {}", one_line(&item.to_string()))?;
    }
    Ok(())
}

/// `text` with its line breaks and other control characters shown as escapes. Implementations come
/// from anywhere; what they say must neither break the layout nor steer a terminal.
fn one_line(text: &str) -> Cow<'_, str> {
    replace_hidden(text, TextUse::Name, |_, hidden, line| {
        line.extend(hidden.chars().flat_map(char::escape_default));
    })
}
