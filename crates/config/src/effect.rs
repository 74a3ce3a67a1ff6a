//! What the keys of a project's file can do, and how its values compare with those of the user and the
//! administrator.

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

windlass_spec::word_set! {
    /// What a project is allowed by one of its settings.
    KeyPower, "power of a key" {
        /// It starts programs.
        RunsPrograms = "runs programs",
        /// It sends data or credentials to a host, or tools of other people.
        SendsData = "sends data",
        /// Its text is shown to models as a part of their instructions.
        InstructsModels = "instructs models",
        /// It loosens the rules for calls.
        LoosensRules = "loosens rules",
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
