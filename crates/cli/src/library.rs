//! `windlass library new`: writes a library file for the tools that an agent file declares.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use windlass_spec::{AgentFile, ToolSpecification};

use super::arguments::{LibraryFile, LibraryFileCommand};
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::{print_content, print_line};
use super::{CommandOutcome, paste};

pub(super) fn run(command: &LibraryFile, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    let LibraryFileCommand::New { file, output } = &command.command;
    let Some(declared) = read_agent_file(file, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    anyhow::ensure!(
        !declared.tools().is_empty(),
        "`{}` declares no tools",
        file.display()
    );
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let text = library_text(&name, &declared);
    let path = output
        .clone()
        .unwrap_or_else(|| file.with_extension("toml"));
    if path == Path::new("-") {
        print_content(&text)?;
        return Ok(CommandOutcome::Done);
    }
    let mut options = windlass_files::options();
    let opened = windlass_files::open(options.write(true).create_new(true), &path);
    opened
        .and_then(|mut created| created.write_all(text.as_bytes()))
        .with_context(|| format!("cannot create `{}`", path.display()))?;
    let check = format!(
        "bind {} --library {}",
        paste::path(file),
        paste::path(&path)
    );
    print_line(&format!(
        "wrote {}; replace its commands, then check it: {}",
        path.display(),
        paste::command(&check, None)
    ))?;
    Ok(CommandOutcome::Done)
}

/// The text of a library file. It binds as it is, and its commands are to be replaced.
fn library_text(name: &str, declared: &AgentFile) -> String {
    let mut text = format!(
        "# The implementations of the tools of `{name}`. Replace each command: it gets the arguments as one JSON\n\
         # object on standard input, and its standard output is the result. Write `http` instead for an endpoint.\n\n\
         name = {}\n",
        quoted(name)
    );
    for tool in declared.tools() {
        text.push_str(&tool_text(tool));
    }
    text
}

fn tool_text(tool: &ToolSpecification) -> String {
    let name = tool.name().as_str();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let key = match name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "\n[tools.{key}]\ndescription = {}\nsignature = {}\ncommand = [{}]\n",
        quoted(tool.description()),
        quoted(&tool.signature().to_string()),
        quoted(&format!("./{name}"))
    );
    text
}

/// A text as a basic string of TOML, which has the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}
