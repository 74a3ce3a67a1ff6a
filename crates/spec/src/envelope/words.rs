//! The closed sets of words of the envelope. Each word is read in any case and written in one
//! spelling.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::failure::{Effect, ErrorCategory};
use crate::risk::UnknownWord;

/// A closed set of words.
pub(super) trait Word: Copy + Sized + 'static {
    /// The name of the set in messages.
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
                    de::Error::custom(format!("`{text}` is not a valid {}; write one of {known}", $what))
                })
            }
        }
    };
}

words! {
    /// The outcome of a call.
    ToolStatus, "status" {
        /// The operation succeeded.
        Success = "success",
        /// The operation failed.
        Error = "error",
        /// The operation has not begun.
        Pending = "pending",
        /// The operation is running.
        InProgress = "in_progress",
        /// The object is created, its work has not begun.
        Created = "created",
        /// A question to a person.
        HumanInputRequested = "human_input_requested",
        /// A request to authorize one exact call.
        AuthorizationRequested = "authorization_requested",
        /// A request to authorize the use of stored data, such as credentials.
        AuthorizationRequired = "authorization_required",
        /// A person must provide credentials.
        CredentialRequired = "credential_required",
        /// A person must do manual work.
        HumanRequired = "human_required",
    }
}

impl ToolStatus {
    /// Whether the call waits for a person.
    #[must_use]
    pub const fn is_hil(self) -> bool {
        self.hil_action().is_some()
    }

    /// The kind of request to a person, if the call waits for one.
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
    /// The kind of request to a person: the `action` of every answer that waits for one.
    HilAction, "human-in-the-loop action" {
        /// A question or manual work.
        AskHuman = "ask_human",
        /// An authorization.
        RequestAuthorization = "request_authorization",
    }
}

words! {
    /// The kind of manual work.
    InterventionType, "intervention type" {
        /// Solve a CAPTCHA.
        Captcha = "captcha",
        /// Log in.
        Login = "login",
        /// Pay.
        Payment = "payment",
        /// Confirm in a wallet.
        Wallet = "wallet",
        /// Verify something, for instance with a second factor.
        Verification = "verification",
    }
}

words! {
    /// The security level of a decision, from the lowest to the highest.
    SecurityLevel, "security level" {
        /// Little risk.
        Low = "LOW",
        /// Can be fixed with some effort.
        Medium = "MEDIUM",
        /// Hard to fix.
        High = "HIGH",
        /// Cannot be fixed, or harms others.
        Critical = "CRITICAL",
    }
}

words! {
    /// How the tasks of a plan run.
    ExecutionMode, "execution mode" {
        /// In parallel, as far as dependencies allow.
        Parallel = "parallel",
        /// One after the other.
        Sequential = "sequential",
    }
}

words! {
    /// The status of accepted work that has not ended, such as a plan.
    WorkStatus, "status of work" {
        /// It has not begun.
        Pending = "pending",
        /// It is running.
        InProgress = "in_progress",
        /// It is created.
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
    /// What an intervention needs from a person.
    InterventionStatus, "status of an intervention" {
        /// Credentials.
        CredentialRequired = "credential_required",
        /// Manual work.
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
