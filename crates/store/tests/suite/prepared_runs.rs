//! One prepared run for each kind of write.

use windlass_core::approval::{Approval, DEFAULT_UNDO_WINDOW, Hold, PersonDecision, Request};
use windlass_core::run::{Event, Run};
use windlass_store::{Durability, Error, InboxCommand, RunJournal, Store};

use super::holds::hold;
use super::questions::{
    approval, arguments, ask_question, call, event, identity, now, request, text, tool,
};
use super::support::{answered, asked, at, id, next_event, start, started, success};

/// The writes of the owner of a run.
pub(crate) const OWNER_WRITES: [&str; 4] = ["append", "ask", "hold", "take"];
/// The writes of other processes.
pub(crate) const OTHER_WRITES: [&str; 3] = ["decide", "undo", "cancel"];

/// The journals of the prepared runs that are written by their owners.
pub(crate) struct PreparedRuns {
    journals: Vec<RunJournal>,
    command: InboxCommand,
}

/// Creates one run for each write and releases it.
pub(crate) fn prepare(store: &Store) {
    for name in OWNER_WRITES.into_iter().chain(OTHER_WRITES) {
        let (journal, mut run) = start(store, name);
        let first = next_event(&run, 1, &success());
        run.apply(&first).unwrap();
        journal.append(&first, Durability::Synced).unwrap();
        if let "take" | "decide" = name {
            ask_question(&journal, &approval(call(name, 0)));
        }
        if name == "undo" {
            let held = hold(name, 0);
            journal.append_holding(&event(&journal, 1), &held).unwrap();
        }
    }
    let approve = PersonDecision::Approve;
    let question = call("take", 0);
    store
        .decide(&question, None, &identity("bea"), approve, now())
        .unwrap();
}

impl PreparedRuns {
    pub(crate) fn take_over(store: &Store) -> Self {
        let take_over = |name| store.take_over(&id(name)).unwrap();
        Self {
            journals: OWNER_WRITES.map(take_over).into(),
            command: store.inbox(&id("take")).unwrap().remove(0),
        }
    }

    /// Tries one write, with a text of this size if it has one.
    pub(crate) fn attempt(&self, store: &Store, what: &str, size: usize) -> Result<(), Error> {
        let by = identity("bea");
        let run = id(what);
        let owned = || {
            let mut journals = self.journals.iter();
            journals.find(|journal| *journal.lease().run() == run)
        };
        let journal = owned().unwrap_or(&self.journals[0]);
        let call = call(what, 0);
        let message = text(&"x".repeat(size));
        match what {
            "append" => journal
                .append(&large_event(size), Durability::Synced)
                .map(drop),
            "ask" => {
                let asked = Approval::ask(Request {
                    message: Some(message),
                    ..request(call)
                });
                journal
                    .append_asking(&event(journal, 2), &asked.unwrap())
                    .map(drop)
            }
            "hold" => {
                let mut arguments = arguments(10);
                arguments.insert("note".to_owned(), message.as_str().into());
                let window = DEFAULT_UNDO_WINDOW;
                let held = Hold::new(call, identity("ada"), tool(), arguments, at(0), window);
                journal.append_holding(&event(journal, 2), &held).map(drop)
            }
            "take" => {
                let event = journal.redacted(large_event(size)).unwrap();
                journal.append_taking(&event, self.command.id).map(drop)
            }
            "decide" => {
                let reject = PersonDecision::Reject {
                    message: Some(message),
                };
                store.decide(&call, None, &by, reject, now()).map(drop)
            }
            "undo" => store.undo(&call, &by, at(2)).map(drop),
            "cancel" => store.request_cancel(&run, &by, now()),
            _ => panic!("unknown write `{what}`"),
        }
    }
}

/// An event with a text of this size.
pub(crate) fn large_event(size: usize) -> Event {
    let run = Run::fold([&started("any", "Find it.")]).unwrap();
    let arguments = serde_json::json!({ "query": "x".repeat(size) });
    answered(&run, vec![asked("search", arguments)], 2)
}
