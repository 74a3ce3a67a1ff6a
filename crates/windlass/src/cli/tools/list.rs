//! `windlass tools list`: a line for each tool, sorted by name.

use serde_json::{Value, json};
use windlass_tools::{BindingMode, Tool, ToolLibrary, builtin_libraries};

use super::known::signature;
use crate::cli::Outcome;
use crate::cli::arguments::ToolsList;
use crate::cli::libraries;
use crate::cli::report::Reporter;
use crate::cli::schema::read_file;
use crate::cli::terminal::{put, say};

/// What is listed of a tool.
struct Row {
    name: String,
    /// The library with an implementation; nothing if none was named, or it has none that fits.
    library: Option<String>,
    signature: Result<String, String>,
    risk: Option<String>,
    description: String,
}

pub(super) fn run(command: &ToolsList, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let named = match &command.library {
        Some(name) => Some(libraries::find(name)?),
        None => None,
    };
    let mut rows = match (&command.agent_file, &named) {
        (None, Some(library)) => of_library(library).collect(),
        (None, None) => builtin_libraries()
            .iter()
            .flat_map(|library| of_library(library).collect::<Vec<_>>())
            .collect(),
        (Some(path), _) => {
            let Some(file) = read_file(path, reporter)? else {
                return Ok(Outcome::Failed);
            };
            let row = |tool: &std::sync::Arc<_>| declared(tool, named.as_ref());
            file.tools().iter().map(row).collect::<Vec<Row>>()
        }
    };
    rows.sort_by(|a, b| (&a.name, &a.library).cmp(&(&b.name, &b.library)));
    match command.json {
        true => rows
            .iter()
            .try_for_each(|row| put(&format!("{}\n", as_json(row))))?,
        false => say_rows(&rows)?,
    }
    Ok(Outcome::Done)
}

fn of_library(library: &ToolLibrary) -> impl Iterator<Item = Row> {
    library.iter().map(|tool: &Tool| Row {
        name: tool.name().to_string(),
        library: Some(library.name().to_owned()),
        signature: signature(tool).map(|signature| signature.to_string()),
        risk: None,
        description: tool.description().to_owned(),
    })
}

fn declared(
    tool: &std::sync::Arc<windlass_spec::ToolSpecification>,
    library: Option<&ToolLibrary>,
) -> Row {
    let library = library.filter(|library| library.bind_tool(tool, BindingMode::Exact).is_ok());
    Row {
        name: tool.name().to_string(),
        library: library.map(|library| library.name().to_owned()),
        signature: Ok(tool.signature().to_string()),
        risk: tool.attributes().risk.map(|risk| risk.to_string()),
        description: tool.description().to_owned(),
    }
}

fn as_json(row: &Row) -> Value {
    json!({
        "name": row.name,
        "library": row.library,
        "signature": row.signature.as_ref().ok(),
        "inexpressible": row.signature.as_ref().err(),
        "risk": row.risk,
        "description": row.description,
    })
}

/// Columns as wide as they must be; the signature, which may be long, stands last.
fn say_rows(rows: &[Row]) -> anyhow::Result<()> {
    let library = |row: &Row| row.library.clone().unwrap_or_else(|| "-".to_owned());
    let risk = |row: &Row| row.risk.clone().unwrap_or_else(|| "-".to_owned());
    let width = |cell: &dyn Fn(&Row) -> String| {
        let widths = rows.iter().map(|row| cell(row).chars().count());
        widths.max().unwrap_or_default()
    };
    let (names, libraries, risks) = (
        width(&|row| row.name.clone()),
        width(&library),
        width(&risk),
    );
    for row in rows {
        let signature = match &row.signature {
            Ok(signature) => signature.as_str(),
            Err(_) => "(no signature says it; see `windlass tools describe`)",
        };
        say(&format!(
            "{:<names$}  {:<libraries$}  {:<risks$}  {signature}",
            row.name,
            library(row),
            risk(row)
        ))?;
    }
    Ok(())
}
