//! Follows the approvals of a tenant: each question when it is asked, decided about, and settled.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_spec::Timestamp;

use crate::approvals::{ApprovalQuery, QuestionId};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::{Service, blocking};

/// How often the store is read while nothing changes.
const PERIOD: Duration = Duration::from_millis(300);

/// One of this many times all questions are read. That finds those that were asked and settled between two
/// reads of the pending ones.
const FULL_READ: u32 = 10;

windlass_spec::word_set! {
    /// What happened to a question.
    ApprovalChangeKind, "change of an approval" {
        /// It was asked.
        Asked = "asked",
        /// A person decided, and it needs a second one.
        Decided = "decided",
        /// It is over: decided, expired or cancelled.
        Settled = "settled",
    }
}

/// A change of a question.
#[derive(Debug, Clone)]
pub struct ApprovalChange {
    /// What happened.
    pub kind: ApprovalChangeKind,
    /// When: the position of the change. A reader that was interrupted continues from here.
    pub at: Timestamp,
    /// The question as it is now.
    pub approval: Approval,
}

impl Service {
    /// The changes of the approvals of the identity's tenant, live, without end. With a time, it begins with
    /// the changes at that time or later; without, with the questions that are pending.
    ///
    /// A reader that was interrupted continues from the time of the last change it had. It may get changes
    /// of that very time again.
    ///
    /// # Errors
    /// If the identity may not read, or the store cannot be read.
    pub fn approval_changes(
        &self,
        identity: &Identity,
        from: Option<Timestamp>,
    ) -> Result<ApprovalChanges, ServiceError> {
        identity.require(Scope::Read)?;
        let mut changes = ApprovalChanges {
            service: self.clone(),
            identity: identity.clone(),
            known: HashMap::new(),
            pending: Vec::new(),
            reads: 0,
            ready: VecDeque::new(),
        };
        for question in self.list_approvals(identity, &ApprovalQuery::default())? {
            changes.take(question, |change, status| match from {
                Some(from) => change.at >= from,
                None => {
                    status == ApprovalStatus::Pending && change.kind == ApprovalChangeKind::Asked
                }
            });
        }
        let ready = changes.ready.make_contiguous();
        ready.sort_by_key(|change| change.at);
        Ok(changes)
    }
}

/// How far a question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QuestionProgress {
    status: ApprovalStatus,
    decisions: usize,
}

impl QuestionProgress {
    fn of(question: &Approval) -> Self {
        Self {
            status: question.status(),
            decisions: question.decisions().len(),
        }
    }
}

/// The live changes of the approvals of a tenant.
pub struct ApprovalChanges {
    service: Service,
    identity: Identity,
    known: HashMap<QuestionId, QuestionProgress>,
    /// The pending questions of the last read.
    pending: Vec<(QuestionId, QuestionProgress)>,
    reads: u32,
    ready: VecDeque<ApprovalChange>,
}

impl fmt::Debug for ApprovalChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalChanges")
            .field("tenant", self.identity.tenant())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl ApprovalChanges {
    /// The next change. Waits while there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<ApprovalChange, ServiceError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            tokio::time::sleep(PERIOD).await;
            self.read().await?;
        }
    }

    /// Reads what changed.
    async fn read(&mut self) -> Result<(), ServiceError> {
        self.reads = self.reads.wrapping_add(1);
        let pending = ApprovalQuery {
            status: Some(ApprovalStatus::Pending),
            ..ApprovalQuery::default()
        };
        let pending: Vec<(QuestionId, QuestionProgress)> = self
            .list(pending)
            .await?
            .iter()
            .map(|question| (QuestionId::of(question), QuestionProgress::of(question)))
            .collect();
        if pending == self.pending && !self.reads.is_multiple_of(FULL_READ) {
            return Ok(());
        }
        self.pending = pending;
        for question in self.list(ApprovalQuery::default()).await? {
            self.take(question, |_, _| true);
        }
        Ok(())
    }

    async fn list(&self, query: ApprovalQuery) -> Result<Vec<Approval>, ServiceError> {
        let (service, identity) = (self.service.clone(), self.identity.clone());
        blocking(move || service.list_approvals(&identity, &query)).await
    }

    /// Queues the wanted changes of a question since it was last read.
    fn take(
        &mut self,
        question: Approval,
        is_wanted: impl Fn(&ApprovalChange, ApprovalStatus) -> bool,
    ) {
        let now = QuestionProgress::of(&question);
        let before = self.known.insert(QuestionId::of(&question), now);
        if before == Some(now) {
            return;
        }
        let is_settled = now.status != ApprovalStatus::Pending;
        let asked = before
            .is_none()
            .then(|| (ApprovalChangeKind::Asked, question.request().asked_at));
        let last = question.decisions().last().map(|decided| decided.at);
        let later = match last {
            _ if is_settled => {
                let at = question.settled_at().or(last);
                let at = at.unwrap_or(question.request().expires_at);
                Some((ApprovalChangeKind::Settled, at))
            }
            Some(at) => Some((ApprovalChangeKind::Decided, at)),
            None => None,
        };
        for (kind, at) in asked.into_iter().chain(later) {
            let change = ApprovalChange {
                kind,
                at,
                approval: question.clone(),
            };
            if is_wanted(&change, now.status) {
                self.ready.push_back(change);
            }
        }
    }
}
