//! What is known of a tool: from the library that implements it, and from the agent file that declares
//! it, if one does. Implementations say nothing of risk or time limits; only declarations do.

use std::path::Path;
use std::sync::Arc;

use windlass_spec::server::ServerName;
use windlass_spec::{Signature, ToolSpecification, nearest_all};
use windlass_tools::{BUILTIN, BindingMode, Tool, ToolLibrary, builtin_specifications};

use crate::arguments::OneTool;
use crate::libraries::{self, Sought};
use crate::report::Reporter;
use crate::schema::{read_file, unknown};
use crate::servers::server_of;

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
    pub(super) fn find(
        asked: &OneTool,
        data: Option<&Path>,
        reporter: &Reporter,
    ) -> anyhow::Result<Option<Self>> {
        let server = server_of(&asked.name);
        let wanted = |name: &ServerName| Some(name) == server.as_ref();
        let sought = Sought {
            data,
            wanted: Some(&wanted),
        };
        let library = libraries::find(&asked.library, sought)?;
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
        } else if library.name() == BUILTIN {
            // These are declared where they are implemented.
            let mut own = builtin_specifications().into_iter();
            declared = own.find(|tool| tool.name().as_str() == asked.name);
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
            None => self.tool.signature(),
        }
    }

    /// Its specification: the declared one, or one that says what the implementation says.
    pub(super) fn specification(&self) -> Result<Arc<ToolSpecification>, String> {
        if let Some(declared) = &self.declared {
            return Ok(Arc::clone(declared));
        }
        self.tool.specification().map(Arc::new)
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
