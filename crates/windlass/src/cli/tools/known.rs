//! What is known of a tool: from the library that implements it, and from the agent file that declares
//! it, if one does. Implementations say nothing of risk or time limits; only declarations do.

use std::sync::Arc;

use windlass_spec::{
    Inexpressible, NonEmptyText, Signature, ToolSpecification, Type, nearest_all,
    parameters_from_schema,
};
use windlass_tools::{BindingMode, Tool, ToolLibrary};

use crate::cli::arguments::OneTool;
use crate::cli::libraries;
use crate::cli::report::Reporter;
use crate::cli::schema::{read_file, unknown};

/// How many names are offered for one that does not exist.
const SUGGESTIONS: usize = 3;

/// A tool that was asked for.
pub(super) struct Known {
    pub(super) library: ToolLibrary,
    pub(super) tool: Tool,
    /// What is declared of it, if an agent file was named.
    pub(super) declared: Option<Arc<ToolSpecification>>,
}

impl Known {
    /// The tool that was asked for. `None` if the agent file has mistakes, which were reported.
    ///
    /// # Errors
    /// If there is no such tool, or the library does not implement what the file declares.
    pub(super) fn find(asked: &OneTool, reporter: &Reporter) -> anyhow::Result<Option<Self>> {
        let library = libraries::find(&asked.library)?;
        let Some(tool) = library.lookup(&asked.name).cloned() else {
            anyhow::bail!(no_such_tool(&asked.name, &library));
        };
        let mut declared = None;
        if let Some(path) = &asked.agent_file {
            let Some(file) = read_file(path, reporter)? else {
                return Ok(None);
            };
            let Some(specification) = file.tool(&asked.name) else {
                let names: Vec<&str> = file.tools().iter().map(|t| t.name().as_str()).collect();
                anyhow::bail!(unknown(
                    "tool",
                    &asked.name,
                    &names,
                    &path.to_string_lossy()
                ));
            };
            library
                .bind_tool(specification, BindingMode::Exact)
                .map_err(|failure| anyhow::anyhow!("{failure}"))?;
            declared = Some(Arc::clone(specification));
        }
        Ok(Some(Self {
            library,
            tool,
            declared,
        }))
    }

    /// What it takes and gives, or why no signature says it.
    pub(super) fn signature(&self) -> Result<Signature, String> {
        match &self.declared {
            Some(declared) => Ok(declared.signature().clone()),
            None => signature(&self.tool),
        }
    }

    /// Its specification: the declared one, or one that says what the implementation says.
    pub(super) fn specification(&self) -> Result<Arc<ToolSpecification>, String> {
        if let Some(declared) = &self.declared {
            return Ok(Arc::clone(declared));
        }
        let description = NonEmptyText::or(self.tool.description(), "(no description)");
        let signature = signature(&self.tool)?;
        let name = self.tool.name().clone();
        Ok(Arc::new(ToolSpecification::new(
            name,
            description,
            signature,
        )))
    }
}

fn no_such_tool(name: &str, library: &ToolLibrary) -> String {
    let names: Vec<&str> = library.iter().map(|tool| tool.name().as_str()).collect();
    let nearest = nearest_all(name, names.iter().copied(), SUGGESTIONS);
    if nearest.len() < 2 {
        return unknown("tool", name, &names, library.name());
    }
    format!(
        "no tool `{name}` in {}\nhint: did you mean one of `{}`?",
        library.name(),
        nearest.join("`, `")
    )
}

/// What an implementation takes and gives as a signature, or why none says it.
pub(super) fn signature(tool: &Tool) -> Result<Signature, String> {
    let parameters = parameters_from_schema(tool.schema())
        .map_err(|reasons| format!("no signature says what it takes{}", listed(&reasons)))?;
    let returns = tool
        .returns_schema()
        .ok_or("it does not say what it returns")?;
    let returns = Type::from_schema(returns)
        .map_err(|reasons| format!("no signature says what it returns{}", listed(&reasons)))?;
    Signature::new(parameters, returns).map_err(|error| error.to_string())
}

fn listed(reasons: &[Inexpressible]) -> String {
    reasons
        .iter()
        .map(|reason| format!("\n  {reason}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_tools::Tool;

    use super::signature;

    fn tool(schema: Value, returns: Option<Value>) -> Option<Tool> {
        let mut builder = Tool::builder("t")
            .description("Does it")
            .schema(schema)
            .handler(|_| async { Ok(json!(1)) });
        if let Some(returns) = returns {
            builder = builder.returns(returns);
        }
        builder.build().ok()
    }

    #[test]
    fn a_schema_that_a_signature_says_becomes_one() {
        let takes = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let tool = tool(takes, Some(json!({"type": "string"})));
        let said = tool.map(|tool| signature(&tool).map(|said| said.to_string()));
        assert_eq!(said, Some(Ok("(n: Int) --> IO Text".to_owned())));
    }

    #[test]
    fn a_schema_that_no_signature_says_is_said_to_be_one() {
        let pattern = json!({"type": "object", "properties": {"n": {"type": "string", "pattern": "^a"}}, "additionalProperties": false});
        for (takes, returns, why) in [
            (pattern.clone(), Some(json!({"type": "string"})), "takes"),
            (
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
                None,
                "returns",
            ),
        ] {
            let tool = tool(takes, returns);
            let said = tool.and_then(|tool| signature(&tool).err());
            assert!(
                said.as_ref().is_some_and(|said| said.contains(why)),
                "{said:?}"
            );
        }
    }
}
