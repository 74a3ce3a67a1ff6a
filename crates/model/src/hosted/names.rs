//! Tool names as providers accept them: at most 64 letters, digits, `_` and `-`. Our names may contain any
//! character. Names are mapped when they are sent and mapped back when they are called.

use std::collections::HashMap;

use windlass_core::model::{FINISH, ModelRequest};

const LONGEST: usize = 64;

/// The names of Google's own tools.
const RESERVED: [&str; 4] = [
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
];

/// The mapping of the tool names of one request.
#[derive(Debug, Default)]
pub(super) struct WireNames {
    ours: HashMap<String, String>,
    theirs: HashMap<String, String>,
}

impl WireNames {
    pub(super) fn new(request: &ModelRequest) -> Self {
        let mut names = Self::default();
        names.add(FINISH);
        for tool in &request.tools {
            names.add(tool.name().as_str());
        }
        names
    }

    /// The provider's name for a tool. Past calls may name unknown tools.
    pub(super) fn wire_name(&self, name: &str) -> String {
        self.theirs
            .get(name)
            .cloned()
            .unwrap_or_else(|| sanitized(name))
    }

    /// The tool for a provider's name.
    pub(super) fn tool_name(&self, name: &str) -> String {
        let ours = self.ours.get(name).map(String::as_str);
        ours.unwrap_or(name).to_owned()
    }

    fn add(&mut self, name: &str) {
        let mut sent = sanitized(name);
        let mut count = 1;
        while self.ours.contains_key(&sent) || RESERVED.contains(&sent.as_str()) {
            count += 1;
            let suffix = format!("_{count}");
            sent = sanitized(name);
            sent.truncate(LONGEST - suffix.len());
            sent.push_str(&suffix);
        }
        self.ours.insert(sent.clone(), name.to_owned());
        self.theirs.insert(name.to_owned(), sent);
    }
}

fn sanitized(name: &str) -> String {
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name
        .chars()
        .map(|c| if is_accepted(c) { c } else { '_' })
        .take(LONGEST)
        .collect();
    if name.is_empty() {
        "_".to_owned()
    } else {
        name
    }
}
