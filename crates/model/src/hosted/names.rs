//! Tool names as providers accept them. Ours may hold any character; theirs only letters, digits,
//! `_` and `-`, at most 64. What is sent is translated back when it is called.

use std::collections::HashMap;

use windlass_core::model::{FINISH, ModelRequest};

const LONGEST: usize = 64;

/// The library takes tools of these names for Google's own, which run at Google.
const TAKEN: [&str; 4] = [
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
];

/// The names of one request's tools, both ways.
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

    /// What the provider is told. Calls of the past may name tools that never were.
    pub(super) fn sent(&self, name: &str) -> String {
        self.theirs
            .get(name)
            .cloned()
            .unwrap_or_else(|| accepted(name))
    }

    /// What the provider's name means.
    pub(super) fn meant(&self, name: &str) -> String {
        let ours = self.ours.get(name).map(String::as_str);
        ours.unwrap_or(name).to_owned()
    }

    fn add(&mut self, name: &str) {
        let mut sent = accepted(name);
        let mut count = 1;
        while self.ours.contains_key(&sent) || TAKEN.contains(&sent.as_str()) {
            count += 1;
            let suffix = format!("_{count}");
            sent = accepted(name);
            sent.truncate(LONGEST - suffix.len());
            sent.push_str(&suffix);
        }
        self.ours.insert(sent.clone(), name.to_owned());
        self.theirs.insert(name.to_owned(), sent);
    }
}

fn accepted(name: &str) -> String {
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
