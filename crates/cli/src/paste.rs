//! Commands of this program that are printed to be pasted. They work where they are pasted: with the options that
//! this command was given, as far as the printed command takes them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use clap::{ArgMatches, CommandFactory as _, parser::ValueSource};

use super::arguments::Arguments;

/// The name of the program, as it begins a command.
const PROGRAM: &str = "windlass ";

/// Options that name what a command works on. All commands that take them need them.
const PLACES: [&str; 3] = ["data", "config", "domain"];

/// Options of an agent. The same command needs them again; a resumed run remembers them.
const AGENT_OPTIONS: [&str; 5] = ["model", "base_url", "library", "agent", "mode"];

/// What this command was given.
#[derive(Debug, Default)]
struct Given {
    /// The names of the command and its subcommands.
    path: Vec<String>,
    /// Options, each with its value for a shell.
    options: Vec<(&'static str, String)>,
}

static GIVEN: OnceLock<Given> = OnceLock::new();

/// Remembers the options that this command was given.
pub(super) fn remember(matches: &ArgMatches) {
    let mut given = Given::default();
    let mut level = Some(matches);
    while let Some(matches) = level {
        let is_evaluation = given.path.first().is_some_and(|name| name == "eval");
        for name in PLACES.into_iter().chain(AGENT_OPTIONS) {
            // The data of `eval` are cases.
            let is_here = !(is_evaluation && name == "data")
                && matches.try_contains_id(name).unwrap_or(false)
                && matches.value_source(name) == Some(ValueSource::CommandLine);
            let values = matches.try_get_raw(name).ok().flatten();
            if !is_here || given.options.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let values = values.into_iter().flatten();
            let values = values.map(|value| (name, quoted(&elsewhere(name, &value.to_owned()))));
            given.options.extend(values);
        }
        level = matches.subcommand().map(|(name, below)| {
            given.path.push(name.to_owned());
            below
        });
    }
    let _ = GIVEN.set(given);
}

/// A value as it works in another directory.
fn elsewhere(name: &str, value: &OsString) -> String {
    let absolute = |path: &Path| match path.exists() || name == "data" {
        true => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        false => path.to_owned(),
    };
    let text = value.to_string_lossy();
    match (name, text.split_once(':')) {
        ("model", Some((kind @ ("scripted" | "replay"), path))) => {
            format!("{kind}:{}", absolute(Path::new(path)).display())
        }
        ("data" | "config" | "library", _) => {
            absolute(Path::new(value)).to_string_lossy().into_owned()
        }
        _ => text.into_owned(),
    }
}

/// A path as it is written in a command that works in another directory.
pub(super) fn path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match path.as_os_str() == "-" {
        true => "-".to_owned(),
        false => quoted(&absolute.to_string_lossy()),
    }
}

/// A command as it works where it is pasted: with this data directory, and the options that this command was given.
pub(super) fn command(command: &str, data: Option<&Path>) -> String {
    let command = match data {
        None => format!("{PROGRAM}{command}"),
        Some(data) => format!(
            "{PROGRAM}{command} --data {}",
            quoted(&data.to_string_lossy())
        ),
    };
    complete(&command).into_owned()
}

/// The same message, in which each command of this program has the options that this command was given. A
/// command is between backticks, or ends a line. Quoted text of others is left as it is.
pub(super) fn complete(message: &str) -> Cow<'_, str> {
    match GIVEN.get() {
        Some(given) if !given.options.is_empty() && message.contains(PROGRAM) => {
            complete_for(given, message).into()
        }
        _ => message.into(),
    }
}

fn complete_for(given: &Given, message: &str) -> String {
    let lines = message.split_inclusive('\n');
    lines
        .map(|line| match line.contains('│') {
            true => line.to_owned(),
            false => complete_line(given, line),
        })
        .collect()
}

fn complete_line(given: &Given, line: &str) -> String {
    let mut completed = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(PROGRAM) {
        let (before, found) = rest.split_at(start);
        completed.push_str(before);
        let is_quoted = before.ends_with('`');
        let is_command = is_quoted || before.trim_end().is_empty() || before.ends_with(": ");
        let end = match is_quoted {
            true => found.find('`'),
            false => Some(found.trim_end_matches('\n').len()),
        };
        let Some(end) = end.filter(|_| is_command) else {
            completed.push_str(PROGRAM);
            rest = &found[PROGRAM.len()..];
            continue;
        };
        completed.push_str(&found[..end]);
        for option in missing_options(given, &found[..end]) {
            completed.push(' ');
            completed.push_str(&option);
        }
        rest = &found[end..];
    }
    completed.push_str(rest);
    completed
}

/// The options that a command takes, this command was given, and it lacks.
fn missing_options(given: &Given, command: &str) -> Vec<String> {
    let root = Arguments::command();
    let (mut level, mut path, mut names) = (&root, Vec::new(), Vec::new());
    let names_of = |level: &clap::Command| {
        let ids = level
            .get_arguments()
            .map(|argument| argument.get_id().to_string());
        ids.collect::<Vec<String>>()
    };
    names.extend(names_of(level));
    for word in command.split_whitespace().skip(1) {
        let Some(below) = level.find_subcommand(word) else {
            break;
        };
        (level, path) = (below, [path, vec![word.to_owned()]].concat());
        names.extend(names_of(level));
    }
    if path.is_empty() || path[0] == "eval" {
        return Vec::new();
    }
    let is_same = path == given.path;
    let options = given.options.iter().filter(|(name, _)| {
        let is_needed = PLACES.contains(name) || is_same;
        let flag = format!(" --{}", name.replace('_', "-"));
        is_needed && names.iter().any(|known| known == name) && !command.contains(&flag)
    });
    options
        .map(|(name, value)| format!("--{} {value}", name.replace('_', "-")))
        .collect()
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_data_directory_of_this_one() {
        let with = |data| command("runs show r1", data);
        assert_eq!(with(None), "windlass runs show r1");
        assert_eq!(
            with(Some(Path::new("target/data"))),
            "windlass runs show r1 --data target/data"
        );
        assert_eq!(
            with(Some(Path::new("Ann's data; rm *"))),
            r"windlass runs show r1 --data 'Ann'\''s data; rm *'"
        );
    }

    fn completed(message: &str) -> String {
        let options = [
            ("data", "/d"),
            ("config", "/c.toml"),
            ("domain", "mail"),
            ("model", "reflex"),
            ("base_url", "http://localhost:1/"),
        ];
        let given = Given {
            path: vec!["run".to_owned()],
            options: options.map(|(name, value)| (name, value.to_owned())).into(),
        };
        complete_for(&given, message)
    }

    #[test]
    fn printed_commands_have_the_options_that_they_take() {
        assert_eq!(
            completed("see `windlass approvals list`, then decide"),
            "see `windlass approvals list --data /d --config /c.toml`, then decide"
        );
        assert_eq!(
            completed("details: windlass trace show r1 --data /x\n"),
            "details: windlass trace show r1 --data /x --config /c.toml\n"
        );
        assert_eq!(
            completed("hint: add the task: `windlass run a.gram \"what to do\"`"),
            "hint: add the task: `windlass run a.gram \"what to do\" --data /d --config /c.toml --domain mail \
             --model reflex --base-url http://localhost:1/`"
        );
        // A resumed run remembers its model.
        assert!(!completed("`windlass runs resume r1`").contains("--model"));
        assert_eq!(
            completed("`windlass check a.gram`"),
            "`windlass check a.gram --config /c.toml`"
        );
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in [
            "a windlass lifts",
            "│ run `windlass runs list`",
            "`windlass` and more",
        ] {
            assert_eq!(completed(text), text);
        }
    }
}
