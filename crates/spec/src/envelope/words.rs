//! The closed sets of words of the envelope. Each word is read in any case and written in one
//! spelling.

use crate::words::words;

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
