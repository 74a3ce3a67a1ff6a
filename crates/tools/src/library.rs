//! Libraries: tools by name. Two libraries may have different tools with the same name. Binding decides which
//! of them an agent gets, so one agent can be tried with either.

use std::collections::HashMap;
use std::ops::Deref;

use windlass_spec::ToolName;

use crate::tool::Tool;

/// Tools by name, in the order they were registered.
#[derive(Debug, Clone)]
pub struct ToolLibrary {
    name: String,
    tools: Vec<Tool>,
    positions: HashMap<ToolName, usize>,
}

impl ToolLibrary {
    /// A library without tools.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tools: Vec::new(),
            positions: HashMap::new(),
        }
    }

    /// Adds a tool, or replaces the one with the same name.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Self {
        self.register(tool);
        self
    }

    /// Adds a tool. A tool with the same name is replaced, in the same position, and returned.
    pub fn register(&mut self, tool: Tool) -> Option<Tool> {
        if let Some(existing) = self
            .positions
            .get(tool.name())
            .and_then(|&position| self.tools.get_mut(position))
        {
            return Some(std::mem::replace(existing, tool));
        }
        self.positions.insert(tool.name().clone(), self.tools.len());
        self.tools.push(tool);
        None
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tool with this name.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<&Tool> {
        self.positions
            .get(name)
            .and_then(|&position| self.tools.get(position))
    }

    /// The tools in the order they were registered.
    #[must_use]
    pub fn list(&self) -> &[Tool] {
        &self.tools
    }

    /// This library, with its name, and the tools of `other` after its own.
    ///
    /// # Errors
    /// All names that both have. A merge never replaces a tool silently.
    pub fn merge(mut self, other: Self) -> Result<Self, MergeConflict> {
        let names: Vec<ToolName> = other
            .iter()
            .filter(|tool| self.lookup(tool.name().as_str()).is_some())
            .map(|tool| tool.name().clone())
            .collect();
        if !names.is_empty() {
            return Err(MergeConflict {
                libraries: [self.name, other.name],
                names,
            });
        }
        for tool in other.tools {
            self.register(tool);
        }
        Ok(self)
    }
}

/// The tools in the order they were registered.
impl Deref for ToolLibrary {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        &self.tools
    }
}

impl<'a> IntoIterator for &'a ToolLibrary {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Two libraries to merge have tools with the same names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the libraries `{}` and `{}` both have {}; register one of each under another name",
    libraries[0],
    libraries[1],
    quoted(names)
)]
pub struct MergeConflict {
    /// The names of the two libraries.
    pub libraries: [String; 2],
    /// The names that both have, in the order of the second.
    pub names: Vec<ToolName>,
}

fn quoted(names: &[ToolName]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
