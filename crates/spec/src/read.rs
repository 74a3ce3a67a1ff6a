//! Reads declared text into an [`AgentFile`], with a diagnostic at the place of each error.
//!
//! Reading has three steps: collect the definitions anywhere in the text, read each tool, read
//! each agent and resolve its references. A name is valid in the whole file and may be used
//! before its definition. Nothing recurses, so the text may nest to any depth.

mod agents;
mod definitions;
mod json;
mod properties;
mod signatures;
mod tools;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use windlass_gram::{Diagnostic, LineIndex, Span};

use crate::agent::AgentFile;
use crate::nearest::nearest_all;
use crate::tool::ToolSpecification;
use definitions::{Definition, Kind};
use json::read_json;

pub(crate) use json::read_agents;

/// The largest number of errors, and of warnings, kept for one text, as in the parser.
const MAX_DIAGNOSTICS: usize = 100;

/// How to write a tool specification.
const OTHER_NOTATION: &str = "write a tool as a pattern: `[name:Tool {description: \"…\", typeSignature: \"(name: Text) --> IO Text\"}]`";

/// The result of reading a text: the declared file unless there are errors, and all diagnostics.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The declared file; `None` if the text has errors.
    pub file: Option<AgentFile>,
    /// Errors and warnings in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads agents and tools from gram text, or from a JSON object as `AgentFile` and `Agent` are serialized.
///
/// ```
/// let reading = windlass_spec::read(r#"
///     [greeter:Agent {instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
///       [sayHello:Tool {description: "Greets a person by name"} | (name::Text)==>(::Text)]]
/// "#);
/// let file = reading.file.expect("no errors");
/// let tool = file.agents()[0].tool("sayHello").expect("it is declared");
/// assert_eq!(tool.signature().to_string(), "(name: Text) --> IO Text");
/// ```
#[must_use]
pub fn read(text: &str) -> Reading {
    if let Some(reading) = read_json(text) {
        return reading;
    }
    let tree = windlass_gram::parse(text);
    let mut reader = Reader {
        source: text,
        lines: OnceCell::new(),
        diagnostics: tree.diagnostics().to_vec(),
        has_errors: !tree.is_valid(),
    };
    if !tree.is_valid() {
        reader.explain_other_notation();
    }
    let file = tree.is_valid().then(|| reader.file(&tree));
    reader.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    Reading {
        file: file.filter(|_| !reader.has_errors),
        diagnostics: reader.diagnostics,
    }
}

struct Reader<'t> {
    source: &'t str,
    lines: OnceCell<LineIndex<'t>>,
    diagnostics: Vec<Diagnostic>,
    has_errors: bool,
}

/// The tools that could be read, by the index of their definition.
type ReadTools = HashMap<usize, Arc<ToolSpecification>>;

impl<'t> Reader<'t> {
    fn file(&mut self, tree: &'t windlass_gram::SyntaxTree<'t>) -> AgentFile {
        let definitions = self.definitions(tree.document());
        if definitions.all.is_empty() && !self.has_errors {
            let end = self.source.trim_end().len() as u32;
            self.report(
                Diagnostic::error(
                    "nothing-declared",
                    Span::new(0, end.min(1)),
                    "the text declares neither an agent nor a tool",
                )
                .with_hint(
                    "declare one, as in `[name:Agent {instruction: \"…\", model: \"…\"}]`, \
                     or check plain gram with `--syntax-only`",
                ),
            );
        }
        let mut read = ReadTools::new();
        for (index, definition) in definitions.of_kind(Kind::Tool) {
            if let Some(tool) = self.tool(definition) {
                read.insert(index, Arc::new(tool));
            }
        }
        let agents = self.agents(&definitions, &read);
        let tools = definitions
            .of_kind(Kind::Tool)
            .filter_map(|(index, _)| read.get(&index).cloned())
            .collect();
        AgentFile { agents, tools }
    }

    /// Explains how to write what other notations write as `toolSpecification: name`.
    fn explain_other_notation(&mut self) {
        let Some(first) = self.diagnostics.iter_mut().find(|found| found.is_error()) else {
            return;
        };
        let at = (first.span.start as usize).min(self.source.len());
        let line = self.source.get(at..).unwrap_or_default();
        let word = "toolSpecification";
        if line
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
        {
            first.hint = Some(OTHER_NOTATION.into());
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.has_errors |= diagnostic.is_error();
        // Counted separately, so that warnings never push out an error.
        let kept = self
            .diagnostics
            .iter()
            .filter(|kept| kept.severity == diagnostic.severity);
        if kept.count() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    fn error_with_hint(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(Diagnostic::error(code, span, message).with_hint(hint));
    }

    /// The line of a definition, for hints.
    fn line(&self, definition: &Definition<'_>) -> usize {
        let lines = self.lines.get_or_init(|| LineIndex::new(self.source));
        lines.position(definition.name.span.start).line
    }

    /// "did you mean …?" for a word that is not in `known`; `None` if no word is near, or if the
    /// hint would not be shown anyway.
    fn did_you_mean<'w>(
        &self,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) -> Option<String> {
        let errors = self.diagnostics.iter().filter(|kept| kept.is_error());
        if errors.count() >= MAX_DIAGNOSTICS {
            return None;
        }
        let nearest = nearest_all(word, known, 3);
        let (last, others) = nearest.split_last()?;
        Some(if others.is_empty() {
            format!("did you mean `{last}`?")
        } else {
            format!("did you mean `{}` or `{last}`?", others.join("`, `"))
        })
    }
}

#[cfg(test)]
mod tests;
