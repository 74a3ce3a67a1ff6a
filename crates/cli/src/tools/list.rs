//! `windlass tools list`: a line for each tool, sorted by name. `windlass tools find`: those that fit
//! what somebody wants to do.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_config::Configuration;
use windlass_reflex::{ToolIndex, ToolView};
use windlass_spec::{ToolName, ToolSpecification};
use windlass_tools::{BUILTIN, BindingMode, Tool, ToolLibrary, builtin_specifications};

use super::lifecycle::Past;
use crate::Outcome;
use crate::arguments::{ToolsFind, ToolsList, WhichTools};
use crate::libraries::{self, Sought};
use crate::report::Reporter;
use crate::schema::read_file;
use crate::settings;
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put};

/// How much of a description is listed.
const DESCRIPTION: usize = 80;

/// What is listed of a tool.
struct Row {
    name: ToolName,
    /// The library with an implementation; nothing if none was named, or it has none that fits.
    library: Option<String>,
    signature: Result<String, String>,
    specification: Option<Arc<ToolSpecification>>,
    description: String,
    schema: Value,
}

pub(super) fn run(command: &ToolsList, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(mut rows) = rows(&command.which, reporter)? else {
        return Ok(Outcome::Failed);
    };
    rows.sort_by(|a, b| (&a.name, &a.library).cmp(&(&b.name, &b.library)));
    let configuration = &settings::configured()?.configuration;
    let past = Past::read(command.data.as_deref())?;
    if command.which.json {
        for row in &rows {
            put(&format!("{}\n", as_json(row, &past, configuration)))?;
        }
        return Ok(Outcome::Done);
    }
    let told: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let stage = past.stage(&row.name, row.specification.as_deref(), configuration);
            let signature = match &row.signature {
                Ok(signature) => signature.clone(),
                Err(_) => "(no signature says it; see `windlass tools describe`)".to_owned(),
            };
            [
                row.name.to_string(),
                row.library.clone().unwrap_or_else(|| "-".to_owned()),
                risk(row, configuration).unwrap_or_else(|| "-".to_owned()),
                stage.as_str().to_owned(),
                signature,
            ]
        })
        .collect();
    say_table(["TOOL", "LIBRARY", "RISK", "STATE", "SIGNATURE"], &told)?;
    Ok(Outcome::Done)
}

pub(super) fn find(command: &ToolsFind, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(rows) = rows(&command.which, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let index = ToolIndex::build(rows.iter().map(|row| ToolView {
        name: row.name.as_str(),
        description: &row.description,
        input_schema: &row.schema,
    }));
    let hits = index.search(&command.query, command.limit);
    if command.which.json {
        for hit in &hits {
            let row = &rows[hit.index];
            let told = json!({
                "name": row.name, "library": row.library, "score": hit.score,
                "description": row.description,
            });
            put(&format!("{told}\n"))?;
        }
        return Ok(Outcome::Done);
    }
    if hits.is_empty() {
        complain("no tool has anything to do with that")?;
        return Ok(Outcome::Done);
    }
    let told: Vec<[String; 4]> = hits
        .iter()
        .map(|hit| {
            let row = &rows[hit.index];
            [
                row.name.to_string(),
                row.library.clone().unwrap_or_else(|| "-".to_owned()),
                format!("{:.2}", hit.score),
                one_line(&row.description, DESCRIPTION),
            ]
        })
        .collect();
    say_table(["TOOL", "LIBRARY", "SCORE", "DESCRIPTION"], &told)?;
    Ok(Outcome::Done)
}

/// The tools that are meant. `None` if the agent file has mistakes, which were reported.
fn rows(which: &WhichTools, reporter: &Reporter) -> anyhow::Result<Option<Vec<Row>>> {
    let named = match &which.library {
        Some(name) => Some(libraries::find(name, Sought::default())?),
        None => None,
    };
    Ok(Some(match (&which.agent_file, &named) {
        (None, Some(library)) => of_library(library),
        (None, None) => libraries::shipped()?.iter().flat_map(of_library).collect(),
        (Some(path), _) => {
            let Some(file) = read_file(path, reporter)? else {
                return Ok(None);
            };
            let row = |tool: &Arc<_>| declared(tool, named.as_ref());
            file.tools().iter().map(row).collect()
        }
    }))
}

fn of_library(library: &ToolLibrary) -> Vec<Row> {
    let own = match library.name() == BUILTIN {
        true => builtin_specifications(),
        false => Vec::new(),
    };
    let row = |tool: &Tool| Row {
        name: tool.name().clone(),
        library: Some(library.name().to_owned()),
        signature: tool.signature().map(|signature| signature.to_string()),
        specification: own.iter().find(|own| own.name() == tool.name()).cloned(),
        description: tool.description().to_owned(),
        schema: tool.schema().clone(),
    };
    library.iter().map(row).collect()
}

fn declared(tool: &Arc<ToolSpecification>, library: Option<&ToolLibrary>) -> Row {
    let library = library.filter(|library| library.bind_tool(tool, BindingMode::Exact).is_ok());
    Row {
        name: tool.name().clone(),
        library: library.map(|library| library.name().to_owned()),
        signature: Ok(tool.signature().to_string()),
        specification: Some(Arc::clone(tool)),
        description: tool.description().to_owned(),
        schema: tool.schema().clone(),
    }
}

fn risk(row: &Row, configuration: &Configuration) -> Option<String> {
    let set = configuration.risk().get(&row.name).copied();
    let declared = || row.specification.as_ref()?.attributes().risk;
    Some(set.or_else(declared)?.to_string())
}

fn as_json(row: &Row, past: &Past, configuration: &Configuration) -> Value {
    let specification = row.specification.as_deref();
    let settings = configuration.tool(&row.name, specification);
    let statistics = past.statistics(&row.name);
    json!({
        "name": row.name,
        "library": row.library,
        "signature": row.signature.as_ref().ok(),
        "inexpressible": row.signature.as_ref().err(),
        "risk": risk(row, configuration),
        "state": past.stage(&row.name, specification, configuration).as_str(),
        "category": settings.category,
        "enabled": settings.switched_off.is_none(),
        "switched_off": settings.switched_off,
        "permissions": settings.demands,
        "timeout_seconds": settings.timeout,
        "rate_limits": settings.rate_limits,
        "success_count": statistics.map_or(0, |of| of.success_count),
        "failure_count": statistics.map_or(0, |of| of.failure_count),
        "description": row.description,
    })
}
