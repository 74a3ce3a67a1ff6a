//! Assesses one command with its words.

use std::collections::HashMap;
use std::sync::LazyLock;

use windlass_spec::RiskLevel;

use super::super::reading::read_operation;
use super::super::sources::{of_http_method, shown};
use super::super::url::Finding;
use super::sed;

/// The sections of the table, and the commands in each.
static TABLE: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut table: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut section = "";
    for line in include_str!("commands.txt").lines() {
        let heading = line.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
        match heading {
            _ if line.starts_with('#') => {}
            Some(heading) => section = heading,
            None => table
                .entry(section)
                .or_default()
                .extend(line.split_ascii_whitespace()),
        }
    }
    table
});

fn is_in(section: &str, word: &str) -> bool {
    TABLE
        .get(section)
        .is_some_and(|words| words.contains(&word))
}

/// Keywords that only structure other commands.
const KEYWORDS: [&str; 14] = [
    "!", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while", "{", "}",
    "coproc",
];

/// Assesses a command. Command lines that it runs are added to `inner`.
pub(super) fn assess(words: &[String], inner: &mut Vec<String>) -> Finding {
    let mut at_least = RiskLevel::Reversible;
    let mut words = words;
    // Each wrapper leaves fewer words, so the loop ends.
    loop {
        let skipped = words.iter().take_while(|word| is_preface(word)).count();
        words = &words[skipped..];
        let Some(first) = words.first() else {
            return Finding::new(at_least, "nothing is run");
        };
        let name = name_of(first);
        if matches!(name.as_str(), "for" | "case" | "select" | "function") {
            return Finding::new(at_least, "the line only structures commands");
        }
        if !is_in("wrapper", &name) {
            break;
        }
        if matches!(name.as_str(), "sudo" | "doas") {
            at_least = RiskLevel::ReversibleWithDelay;
        }
        words = &words[1 + wrapper_words(&name, &words[1..])..];
    }
    let assessed = assess_command(&name_of(&words[0]), &words[1..], inner);
    let floor = Finding::new(at_least, "the command runs with elevated privileges");
    floor.worse(assessed)
}

fn is_preface(word: &str) -> bool {
    let assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    });
    assignment || KEYWORDS.contains(&word)
}

/// The name of a command without its directory.
fn name_of(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if name.is_empty() {
        word.to_owned()
    } else {
        name.to_owned()
    }
}

/// How many words after a wrapper belong to it. The value of an unlisted option looks like an unknown
/// command, which is assessed as irreversible.
fn wrapper_words(name: &str, words: &[String]) -> usize {
    let with_value: &[&str] = match name {
        "sudo" | "doas" => &[
            "-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t",
        ],
        "env" => &["-u", "-C"],
        "nice" | "watch" => &["-n"],
        "ionice" => &["-c", "-n"],
        "timeout" => &["-k", "-s"],
        "xargs" => &["-I", "-n", "-P", "-L", "-d", "-s", "-E", "-a"],
        "time" => &["-f", "-o"],
        "stdbuf" => &["-i", "-o", "-e"],
        "exec" => &["-a"],
        _ => &[],
    };
    let mut own = 0;
    while let Some(word) = words.get(own).filter(|word| word.starts_with('-')) {
        own += 1;
        if with_value.contains(&word.as_str()) {
            own += 1;
        }
    }
    if name == "timeout" {
        own += 1;
    }
    own.min(words.len())
}

fn assess_command(name: &str, rest: &[String], inner: &mut Vec<String>) -> Finding {
    let finding = |level, what: &str| Finding::new(level, what.to_owned());
    let plain = || format!("`{}` is run", shown(name));
    if name.contains('$') {
        return finding(
            RiskLevel::Irreversible,
            "the command is known only at run time",
        );
    }
    if name == "sed" && !sed::is_plain(rest) {
        let what = "the script of `sed` may run commands";
        return finding(RiskLevel::Irreversible, what);
    }
    if let Some(assessed) = assess_options(name, rest) {
        return assessed;
    }
    let operands = || rest.iter().filter(|word| !word.starts_with('-'));
    match name {
        "git" => return assess_git(rest),
        "find" | "fd" => return assess_find(rest, inner),
        "curl" => return assess_curl(rest),
        "xargs" => return finding(RiskLevel::Reversible, "nothing is run"),
        "awk"
            if rest
                .iter()
                .any(|word| word.contains("system") || word.contains(['>', '|'])) =>
        {
            let what = "the script of `awk` runs commands or writes";
            return finding(RiskLevel::Irreversible, what);
        }
        "tee" if !has_flag(rest, 'a') && operands().any(|file| file != "/dev/null") => {
            return finding(RiskLevel::Irreversible, "`tee` overwrites a file");
        }
        "uniq" | "xxd" if operands().count() > 1 => {
            return finding(RiskLevel::Irreversible, "the output overwrites a file");
        }
        "mount" if !rest.is_empty() => return finding(RiskLevel::Irreversible, "`mount` mounts"),
        "ip" | "ifconfig" | "hostname" if rest.len() > 1 => {
            return finding(
                RiskLevel::Irreversible,
                "the network configuration may change",
            );
        }
        _ => {}
    }
    if is_in("interpreter", name) {
        let is_line = matches!(
            name,
            "ash" | "bash" | "csh" | "dash" | "fish" | "ksh" | "sh" | "zsh"
        );
        let at = rest
            .iter()
            .position(|word| word.starts_with('-') && word.ends_with('c'));
        if let Some(line) = at.and_then(|at| rest.get(at + 1)).filter(|_| is_line) {
            inner.push(line.clone());
            return finding(RiskLevel::Reversible, "a command line is run");
        }
        if matches!(rest, [flag] if flag == "--version" || flag == "-V") {
            return finding(RiskLevel::Reversible, "the version is shown");
        }
        return Finding::new(
            RiskLevel::Irreversible,
            format!("{} with a program", plain()),
        );
    }
    if is_in("family", name) {
        return assess_family(name, rest);
    }
    if is_in("final", name) {
        let shown_words = rest
            .iter()
            .take(2)
            .map(|word| shown(word))
            .collect::<Vec<_>>();
        let what = format!("`{} {}` is run", shown(name), shown_words.join(" "));
        return Finding::new(RiskLevel::Irreversible, what);
    }
    if is_in("change", name) {
        let many = has_flag(rest, 'R')
            || has_flag(rest, 'r')
            || rest
                .iter()
                .any(|word| word == "--recursive" || word.contains(['*', '?']));
        let keeps_existing = matches!(
            name,
            "cp" | "ln" | "mkdir" | "rsync" | "scp" | "tar" | "touch" | "zip"
        );
        let level = if many && !keeps_existing {
            RiskLevel::Irreversible
        } else {
            RiskLevel::ReversibleWithDelay
        };
        return Finding::new(level, plain());
    }
    if is_in("read", name) {
        return Finding::new(RiskLevel::Reversible, plain());
    }
    let asks = matches!(rest, [flag] if flag == "--version" || flag == "--help");
    if asks {
        return Finding::new(RiskLevel::Reversible, plain());
    }
    let what = format!("the command `{}` is unknown", shown(name));
    Finding::new(RiskLevel::Irreversible, what)
}

/// Assesses the options of a command, by the table.
fn assess_options(name: &str, rest: &[String]) -> Option<Finding> {
    let given = |option: &str| match option
        .strip_prefix('-')
        .map(|o| o.chars().collect::<Vec<_>>())
    {
        Some(letters) if letters.len() == 1 => has_flag(rest, letters[0]),
        _ => rest.iter().any(|word| word.starts_with(option)),
    };
    let found = |section: &str| {
        let rows = TABLE.get(section).map_or(&[][..], Vec::as_slice);
        rows.chunks_exact(2)
            .find(|row| row[0] == name && given(row[1]))
            .map(|row| format!("`{} {}` is run", row[0], row[1]))
    };
    if let Some(what) = found("options: final") {
        return Some(Finding::new(RiskLevel::Irreversible, what));
    }
    let what = found("options: change")?;
    Some(Finding::new(RiskLevel::ReversibleWithDelay, what))
}

/// Whether a short flag is given, alone or combined with others: `-r`, `-rf`.
fn has_flag(words: &[String], flag: char) -> bool {
    words.iter().any(|word| {
        word.strip_prefix('-')
            .is_some_and(|flags| !flags.starts_with('-') && flags.contains(flag))
    })
}

fn assess_git(rest: &[String]) -> Finding {
    let mut words = rest.iter();
    let mut subcommand = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "-C" | "--git-dir" | "--work-tree" => {
                words.next();
            }
            // Settings given here may name programs to run.
            "-c" => {
                let what = "`git -c` changes settings for the command";
                return Finding::new(RiskLevel::Irreversible, what);
            }
            word if word.starts_with('-') => {}
            word => {
                subcommand = Some(word);
                break;
            }
        }
    }
    let Some(subcommand) = subcommand else {
        return Finding::new(RiskLevel::Reversible, "`git` shows help");
    };
    let rest: Vec<String> = words.cloned().collect();
    let is = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_str()));
    let loses = match subcommand {
        "push" => {
            has_flag(&rest, 'f')
                || has_flag(&rest, 'd')
                || rest
                    .iter()
                    .any(|word| word.starts_with("--force") || word.starts_with(['+', ':']))
                || is(&["--delete", "--mirror", "--prune"])
        }
        "reset" => is(&["--hard", "--merge", "--keep"]),
        "checkout" | "switch" => is(&["--", ".", "-f", "--force", "--discard-changes"]),
        "branch" | "tag" => {
            has_flag(&rest, 'D') || has_flag(&rest, 'd') || is(&["--delete", "-f", "--force"])
        }
        "stash" => is(&["drop", "clear"]),
        "remote" | "worktree" | "submodule" => is(&["remove", "rm", "prune", "deinit", "foreach"]),
        "rebase" | "am" => is(&["-x", "--exec"]),
        "bisect" => is(&["run"]),
        _ => false,
    };
    // Options that name a program to run, and addresses that are a program.
    let runs = rest.iter().any(|word| {
        let options = [
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--ext-diff",
            "--open-files",
        ];
        word.starts_with("ext::") || options.iter().any(|option| word.starts_with(option))
    });
    let writes = rest.iter().any(|word| word.starts_with("--output"));
    let lists = match subcommand {
        "branch" | "tag" | "remote" => rest.iter().all(|word| word.starts_with('-')),
        "stash" => is(&["list", "show"]),
        "config" => is(&["--get", "--list", "-l", "--get-all"]),
        "worktree" => is(&["list"]),
        _ => false,
    };
    let level = if loses || runs || is_in("git final", subcommand) {
        RiskLevel::Irreversible
    } else if writes {
        RiskLevel::ReversibleWithDelay
    } else if lists || is_in("git read", subcommand) {
        RiskLevel::Reversible
    } else if is_in("git change", subcommand) {
        RiskLevel::ReversibleWithDelay
    } else {
        RiskLevel::Irreversible
    };
    Finding::new(level, format!("`git {}` is run", shown(subcommand)))
}

fn assess_find(rest: &[String], inner: &mut Vec<String>) -> Finding {
    let mut worst = Finding::new(RiskLevel::Reversible, "`find` is run");
    let mut words = rest;
    while let Some((word, after)) = words.split_first() {
        words = after;
        let found = match word.as_str() {
            "-delete" => Finding::new(RiskLevel::Irreversible, "`find -delete` deletes"),
            "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                Finding::new(RiskLevel::Irreversible, "`find` writes a file")
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                let end = after.iter().position(|word| word == ";" || word == "+");
                let (command, after) = after.split_at(end.unwrap_or(after.len()));
                words = after;
                // One level is enough: `find` inside `find` counts as irreversible.
                match command.first().map(|word| name_of(word)) {
                    Some(name) if name != "find" && name != "fd" => assess(command, inner),
                    _ => Finding::new(RiskLevel::Irreversible, "`find` runs something"),
                }
            }
            _ => continue,
        };
        worst = worst.worse(found);
    }
    worst
}

fn assess_curl(rest: &[String]) -> Finding {
    let mut worst = Finding::new(RiskLevel::Reversible, "`curl` fetches");
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let method = match word.as_str() {
            "-X" | "--request" => words.next().map(String::as_str),
            word => word
                .strip_prefix("-X")
                .or_else(|| word.strip_prefix("--request=")),
        };
        let sends = ["-d", "--data", "-F", "--form", "--json"]
            .iter()
            .any(|flag| word.starts_with(flag));
        let found = if let Some(method) = method {
            let level = of_http_method(method).unwrap_or(RiskLevel::Irreversible);
            Finding::new(level, format!("`curl` sends a {} request", shown(method)))
        } else if sends {
            Finding::new(RiskLevel::ReversibleWithDelay, "`curl` sends data")
        } else if word == "-T" || word.starts_with("--upload-file") {
            Finding::new(RiskLevel::ReversibleWithDelay, "`curl` uploads a file")
        } else if word.starts_with("--output") || word.starts_with("--remote-name") || {
            let short = word.starts_with('-') && !word.starts_with("--");
            short && word.contains(['o', 'O'])
        } {
            Finding::new(RiskLevel::ReversibleWithDelay, "`curl` writes a file")
        } else if word == "-K" || word.starts_with("--config") {
            Finding::new(
                RiskLevel::Irreversible,
                "`curl` reads its options from a file",
            )
        } else if let Some(assessed) = super::super::url::assess(word) {
            assessed
        } else {
            continue;
        };
        worst = worst.worse(found);
    }
    worst
}

/// Assesses a command with subcommands: `kubectl get pods`, `aws s3 rm`.
fn assess_family(name: &str, rest: &[String]) -> Finding {
    let words: Vec<&String> = rest
        .iter()
        .filter(|word| !word.starts_with('-'))
        .take(3)
        .collect();
    let level_of = |word: &str| {
        if is_in("family read", word) {
            Some(RiskLevel::Reversible)
        } else if is_in("family change", word) {
            Some(RiskLevel::ReversibleWithDelay)
        } else {
            read_operation(word)
        }
    };
    let shown_words: Vec<String> = words.iter().take(2).map(|word| shown(word)).collect();
    let what = format!("`{} {}` is run", shown(name), shown_words.join(" "));
    let level = words.iter().find_map(|word| level_of(word));
    // A later word may be graver than the first known one: `docker image rm`.
    let graver = words
        .iter()
        .filter_map(|word| level_of(word))
        .filter(|level| *level == RiskLevel::Irreversible)
        .max();
    let forced = rest.iter().any(|word| word == "--force" || word == "-f")
        && name != "kubectl"
        && name != "docker"
        && name != "helm";
    let level = level.max(graver).unwrap_or(RiskLevel::Irreversible);
    let level = if forced && level > RiskLevel::Reversible {
        RiskLevel::Irreversible
    } else {
        level
    };
    Finding::new(level, what)
}
