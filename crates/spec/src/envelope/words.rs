//! The closed sets of words of the envelope. Each word is read in any case and written in one
//! spelling. What a word leads to is decided where it is used.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::failure::{Effect, ErrorCategory};
use crate::risk::UnknownWord;

/// A closed set of words.
pub(super) trait Word: Copy + Sized + 'static {
    /// What the set is called in messages.
    const WHAT: &'static str;

    /// Every word.
    fn all() -> &'static [Self];

    /// The canonical spelling.
    fn word(self) -> &'static str;

    /// The word that `text` spells, in any case.
    fn from_word(text: &str) -> Option<Self> {
        let mut all = Self::all().iter().copied();
        all.find(|word| word.word().eq_ignore_ascii_case(text))
    }

    /// All spellings, for messages.
    fn known() -> String {
        let words: Vec<_> = Self::all().iter().map(|word| word.word()).collect();
        words.join(", ")
    }
}

macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident, $what:literal {
            $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it in JSON and messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl Word for $name {
            const WHAT: &'static str = $what;

            fn all() -> &'static [Self] {
                &Self::ALL
            }

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            /// Reads the word in any case.
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::from_word(text).ok_or(UnknownWord)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::from_word(&text).ok_or_else(|| {
                    let known = Self::known();
                    de::Error::custom(format!("`{text}` is no {}; write one of {known}", $what))
                })
            }
        }
    };
}

words! {
    /// How a call went.
    ToolStatus, "status" {
        /// The operation succeeded.
        Success = "success",
        /// The operation failed.
        Error = "error",
        /// The operation has not begun.
        Pending = "pending",
        /// The operation is running.
        InProgress = "in_progress",
        /// What was asked for exists now, its work is yet to be done.
        Created = "created",
        /// A person is asked a question.
        HumanInputRequested = "human_input_requested",
        /// A person is asked to allow one exact call.
        AuthorizationRequested = "authorization_requested",
        /// A person is asked to allow the use of what is stored for them, such as credentials.
        AuthorizationRequired = "authorization_required",
        /// A person has to give credentials.
        CredentialRequired = "credential_required",
        /// A person has to do something by hand.
        HumanRequired = "human_required",
    }
}

impl ToolStatus {
    /// Whether the call waits for a person.
    #[must_use]
    pub const fn is_hil(self) -> bool {
        self.hil_action().is_some()
    }

    /// What is asked of a person, if anything is.
    #[must_use]
    pub const fn hil_action(self) -> Option<HilAction> {
        match self {
            Self::Success | Self::Error | Self::Pending | Self::InProgress | Self::Created => None,
            Self::HumanInputRequested | Self::CredentialRequired | Self::HumanRequired => {
                Some(HilAction::AskHuman)
            }
            Self::AuthorizationRequested | Self::AuthorizationRequired => {
                Some(HilAction::RequestAuthorization)
            }
        }
    }
}

words! {
    /// What is asked of a person: the `action` of every answer that waits for one.
    HilAction, "human-in-the-loop action" {
        /// Something only a person can say or do.
        AskHuman = "ask_human",
        /// Leave to go on.
        RequestAuthorization = "request_authorization",
    }
}

words! {
    /// What a person has to do by hand.
    InterventionType, "intervention type" {
        /// Solve a puzzle that machines should not.
        Captcha = "captcha",
        /// Log in.
        Login = "login",
        /// Pay.
        Payment = "payment",
        /// Confirm in a wallet.
        Wallet = "wallet",
        /// Prove something, for instance with a second factor.
        Verification = "verification",
    }
}

words! {
    /// How much care a person's decision needs, from the least to the most.
    SecurityLevel, "security level" {
        /// Little can go wrong.
        Low = "LOW",
        /// It can be put right with some effort.
        Medium = "MEDIUM",
        /// It is hard to put right.
        High = "HIGH",
        /// It cannot be put right, or hurts others.
        Critical = "CRITICAL",
    }
}

words! {
    /// In which order the tasks of a plan run.
    ExecutionMode, "execution mode" {
        /// At the same time, as far as dependencies allow.
        Parallel = "parallel",
        /// One after the other.
        Sequential = "sequential",
    }
}

words! {
    /// How far work is that has not ended: the statuses of plans and of other accepted work.
    WorkStatus, "status of work" {
        /// It has not begun.
        Pending = "pending",
        /// It is running.
        InProgress = "in_progress",
        /// It exists, and that is all.
        Created = "created",
    }
}

impl From<WorkStatus> for ToolStatus {
    fn from(status: WorkStatus) -> Self {
        match status {
            WorkStatus::Pending => Self::Pending,
            WorkStatus::InProgress => Self::InProgress,
            WorkStatus::Created => Self::Created,
        }
    }
}

words! {
    /// What a manual intervention needs from a person.
    InterventionStatus, "status of an intervention" {
        /// Credentials.
        CredentialRequired = "credential_required",
        /// Their hands.
        HumanRequired = "human_required",
    }
}

impl From<InterventionStatus> for ToolStatus {
    fn from(status: InterventionStatus) -> Self {
        match status {
            InterventionStatus::CredentialRequired => Self::CredentialRequired,
            InterventionStatus::HumanRequired => Self::HumanRequired,
        }
    }
}

impl Word for ErrorCategory {
    const WHAT: &'static str = "error category";

    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Effect {
    const WHAT: &'static str = "effect";

    fn all() -> &'static [Self] {
        &[Self::None, Self::Applied, Self::Unknown]
    }

    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Applied => "applied",
            Self::Unknown => "unknown",
        }
    }
}
