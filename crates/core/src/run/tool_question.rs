//! What a tool asks a person because it cannot continue otherwise.

use serde_json::{Map, Value};
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel, Timestamp, ToolName};

use crate::approval::{
    Ask, Authorize, CredentialUse, Intervene, NamedCall, Question, least_security_level,
    seal_fields,
};

/// What a tool asks a person because it cannot continue otherwise, and what it wants that person to see.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolQuestion {
    /// What it asks.
    pub subject: QuestionSubject,
    /// The user it wants to ask, as shown.
    pub user_id: Option<String>,
    /// How to answer.
    pub instruction: Option<String>,
    /// The headline, if it is not the question or the reason itself.
    pub message: Option<NonEmptyText>,
    /// The call that the tool names in its own request.
    pub named_call: Option<NamedCall>,
    /// What its request has besides, by name.
    pub further: Map<String, Value>,
    /// When it expires, if that is sooner than the operator's limit.
    pub expires_at: Option<Timestamp>,
}

/// What a tool asks a person.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionSubject {
    /// A question in words.
    Ask(Ask),
    /// Something that has to be done by hand.
    Intervene(Intervene),
    /// Authorization to continue. It applies to the tool's own call, which is made again with the proof of
    /// the approval.
    Authorization {
        /// The reason.
        reason: NonEmptyText,
        /// The security level of the decision, if higher than usual.
        security_level: Option<SecurityLevel>,
        /// The stored credentials it would use.
        credentials: Option<CredentialUse>,
    },
}

impl ToolQuestion {
    /// A question with nothing but its subject.
    #[must_use]
    pub fn new(subject: QuestionSubject) -> Self {
        Self {
            subject,
            user_id: None,
            instruction: None,
            message: None,
            named_call: None,
            further: Map::new(),
            expires_at: None,
        }
    }

    /// A question in words, to be answered with any text.
    #[must_use]
    pub fn ask(question: NonEmptyText) -> Self {
        Self::new(QuestionSubject::Ask(Ask {
            question,
            context: None,
            options: Vec::new(),
            free_text: true,
            form: None,
        }))
    }

    /// A request to authorize the tool's own call.
    #[must_use]
    pub fn authorization(reason: NonEmptyText) -> Self {
        Self::new(QuestionSubject::Authorization {
            reason,
            security_level: None,
            credentials: None,
        })
    }

    /// A request for manual work.
    #[must_use]
    pub fn intervention(work: Intervene) -> Self {
        Self::new(QuestionSubject::Intervene(work))
    }

    /// Replaces the texts that are shown only to the person who decides: screenshots, and the preview of
    /// stored credentials, wherever they are. `seal` makes them unreadable for everyone else.
    pub fn seal(&mut self, seal: impl Fn(&str) -> String) {
        match &mut self.subject {
            QuestionSubject::Ask(_) => {}
            QuestionSubject::Intervene(work) => work.seal(&seal),
            QuestionSubject::Authorization { credentials, .. } => {
                if let Some(credentials) = credentials {
                    credentials.seal(&seal);
                }
            }
        }
        if let Some(named) = &mut self.named_call {
            seal_fields(&mut named.tool_args, &seal);
        }
        seal_fields(&mut self.further, &seal);
    }

    /// The question about a call of the tool. `usual` is the security level that the call needs anyway.
    pub(super) fn into_question(
        self,
        tool: &ToolName,
        arguments: &Map<String, Value>,
        risk: RiskLevel,
        usual: SecurityLevel,
    ) -> Question {
        match self.subject {
            QuestionSubject::Ask(ask) => Question::Ask(ask),
            QuestionSubject::Intervene(work) => Question::Intervene(work),
            QuestionSubject::Authorization {
                reason,
                security_level,
                credentials,
            } => {
                let level = security_level.unwrap_or(SecurityLevel::Low).max(usual);
                Question::Authorize(Authorize {
                    tool_name: tool.clone(),
                    tool_args: arguments.clone(),
                    reason,
                    risk,
                    security_level: level.max(least_security_level(risk)),
                    rule: None,
                    credentials,
                })
            }
        }
    }
}
