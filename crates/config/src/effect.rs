//! What the keys of a project's file can do, and how its values compare with those of the user and the
//! administrator.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a value of a key can do if the file that sets it is not trusted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyEffect {
    /// Nothing that needs trust.
    Harmless,
    /// The keys of the table have their own effects.
    ByKey,
    /// A new entry of the table needs trust. The keys of an entry that exists have their own effects.
    NewEntry(KeyPower),
    /// The value needs trust, unless it is stricter than the one it replaces.
    Needs(KeyPower, Stricter),
    /// Policies of a project restrict those of the user and the administrator, and replace only the built-in ones.
    Stacks,
    /// A project's file must not set it.
    OwnerOnly,
}

/// What a project is allowed by one of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyPower {
    /// It starts programs.
    RunsPrograms,
    /// It sends data or credentials to a host, or tools of other people.
    SendsData,
    /// It loosens the rules for calls.
    LoosensRules,
}

impl KeyPower {
    /// What it is, in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunsPrograms => "runs programs",
            Self::SendsData => "sends data",
            Self::LoosensRules => "loosens rules",
        }
    }
}

impl fmt::Display for KeyPower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for KeyPower {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Which values of a key are stricter than another one. Equal values are as strict.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stricter {
    /// None.
    Never,
    /// This text, or a list of only this text.
    Only(&'static str),
    /// None, and a trusted project cannot change a value that the user or the administrator set either.
    Same,
    /// Lower numbers. Every number is stricter than none.
    Lower,
    /// Numbers that are lower than one that is set.
    LowerThanSet,
    /// Higher numbers.
    Higher,
    /// Later words of the key's list. Only the last one is stricter than none.
    LaterWord,
    /// `false`. `unset` applies if there is no value.
    False { unset: bool },
    /// `true`. `unset` applies if there is no value.
    True { unset: bool },
    /// Fewer items.
    Fewer { unset: Unset },
    /// More items.
    More,
    /// Directories inside the directories of the other value.
    Inside,
}

/// What a list allows if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    Nothing,
    Everything,
}
