//! Assesses a command line. It is split as a shell would split it, every command is looked up in a table
//! (`shell/commands.txt`), and the gravest counts. An unknown command or a line that cannot be parsed
//! counts as irreversible.

mod command;
mod sed;
mod split;

use windlass_spec::RiskLevel;

use super::url::Finding;
use split::{Line, Redirect};

/// The maximum length of a line that is read.
const MAX_BYTES: usize = 64 * 1024;
/// The maximum number of nested lines (`$(...)`, `sh -c`) that are read.
const MAX_LINES: usize = 64;

/// Assesses a command line.
pub(super) fn assess(line: &str) -> Finding {
    assess_all(vec![line.to_owned()])
}

/// Assesses a command that is given word by word.
pub(super) fn assess_words(words: Vec<String>) -> Finding {
    let mut inner = Vec::new();
    let own = command::assess(&words, &mut inner);
    if inner.is_empty() {
        own
    } else {
        own.worse(assess_all(inner))
    }
}

fn assess_all(mut lines: Vec<String>) -> Finding {
    let mut worst = Finding::new(RiskLevel::Reversible, "the commands only read");
    let mut count = 0;
    while let Some(line) = lines.pop() {
        count += 1;
        if count > MAX_LINES || line.len() > MAX_BYTES {
            let what = "the command line is too long to assess";
            return Finding::new(RiskLevel::Irreversible, what);
        }
        let Some(Line {
            commands,
            redirects,
            inner,
        }) = split::split(&line)
        else {
            let what = "the command line cannot be parsed";
            return Finding::new(RiskLevel::Irreversible, what);
        };
        lines.extend(inner);
        for words in commands {
            worst = worst.worse(command::assess(&words, &mut lines));
        }
        for redirect in redirects {
            worst = worst.worse(assess_redirect(&redirect));
        }
        if worst.level == RiskLevel::Irreversible {
            break;
        }
    }
    worst
}

fn assess_redirect(redirect: &Redirect) -> Finding {
    let Redirect { appends, target } = redirect;
    let nowhere = matches!(target.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr");
    let shown = super::sources::shown(target);
    if nowhere {
        Finding::new(RiskLevel::Reversible, "the output is discarded")
    } else if *appends && !target.starts_with("/dev/") {
        let what = format!("the output is appended to `{shown}`");
        Finding::new(RiskLevel::ReversibleWithDelay, what)
    } else {
        let what = format!("the output overwrites `{shown}`");
        Finding::new(RiskLevel::Irreversible, what)
    }
}
