//! The names of the tools that every run has. No other tool or agent may have one of these names, because
//! a model's call would be ambiguous.

use crate::plan::{CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, UPDATE_TASK_STATUS};

/// Asks the user a question.
pub const ASK_HUMAN: &str = "ask_human";

/// Asks the approver to authorize one exact call.
pub const REQUEST_AUTHORIZATION: &str = "request_authorization";

/// Searches tools that the model is not shown.
pub const FIND_TOOLS: &str = "find_tools";

/// Ends the run with an answer.
pub const FINISH: &str = "finish";

/// All reserved names.
pub const RESERVED_NAMES: [&str; 7] = [
    ASK_HUMAN,
    REQUEST_AUTHORIZATION,
    CREATE_EXECUTION_PLAN,
    UPDATE_TASK_STATUS,
    GET_EXECUTION_STATUS,
    FIND_TOOLS,
    FINISH,
];

/// A tool or agent has a reserved name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name `{name}` is reserved for a built-in tool; choose another")]
pub struct ReservedName {
    /// The name.
    pub name: String,
}

/// Checks that a name is free for tools and agents. A name that differs from a reserved one only in case, or has `-`
/// for `_`, could pass for it and is not free.
///
/// # Errors
/// If it is reserved.
pub fn check_name(name: &str) -> Result<(), ReservedName> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    match RESERVED_NAMES.contains(&plain.as_str()) {
        true => Err(ReservedName {
            name: name.to_owned(),
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::SEPARATOR;

    #[test]
    fn tools_of_servers_cannot_have_a_reserved_name() {
        for name in RESERVED_NAMES {
            assert!(!name.contains(SEPARATOR), "{name}");
            assert!(check_name(name).is_err());
            assert!(check_name(&name.to_uppercase()).is_err());
            assert!(check_name(&name.replace('_', "-")).is_err());
        }
        assert_eq!(check_name("finish_report"), Ok(()));
    }
}
