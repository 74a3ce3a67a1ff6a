//! What a command line does. It is split as a shell would split it, every command in it is looked
//! up in a table (`shell/commands.txt`), and the gravest counts. A command that the table does not
//! hold, or a line that cannot be read, may do anything.

mod command;
mod sed;
mod split;

use windlass_spec::RiskLevel;

use super::url::Judged;
use split::{Line, Redirect};

/// Longer lines are not read.
const MAX_BYTES: usize = 64 * 1024;
/// More lines inside lines (`$(...)`, `sh -c`) are not read.
const MAX_LINES: usize = 64;

/// What a command line does.
pub(super) fn judge(line: &str) -> Judged {
    judge_all(vec![line.to_owned()])
}

/// What a command does that is given word by word.
pub(super) fn judge_words(words: Vec<String>) -> Judged {
    let mut inner = Vec::new();
    let own = command::judge(&words, &mut inner);
    if inner.is_empty() {
        own
    } else {
        own.worse(judge_all(inner))
    }
}

fn judge_all(mut lines: Vec<String>) -> Judged {
    let mut worst = Judged::new(RiskLevel::Reversible, "the commands only read");
    let mut count = 0;
    while let Some(line) = lines.pop() {
        count += 1;
        if count > MAX_LINES || line.len() > MAX_BYTES {
            let what = "the command line is too long to judge";
            return Judged::new(RiskLevel::Irreversible, what);
        }
        let Some(Line {
            commands,
            redirects,
            inner,
        }) = split::split(&line)
        else {
            let what = "the command line cannot be read";
            return Judged::new(RiskLevel::Irreversible, what);
        };
        lines.extend(inner);
        for words in commands {
            worst = worst.worse(command::judge(&words, &mut lines));
        }
        for redirect in redirects {
            worst = worst.worse(judge_redirect(&redirect));
        }
        if worst.level == RiskLevel::Irreversible {
            break;
        }
    }
    worst
}

fn judge_redirect(redirect: &Redirect) -> Judged {
    let Redirect { appends, target } = redirect;
    let nowhere = matches!(target.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr");
    let shown = super::sources::shown(target);
    if nowhere {
        Judged::new(RiskLevel::Reversible, "the output goes nowhere")
    } else if *appends && !target.starts_with("/dev/") {
        let what = format!("the output is appended to `{shown}`");
        Judged::new(RiskLevel::ReversibleWithDelay, what)
    } else {
        let what = format!("the output overwrites `{shown}`");
        Judged::new(RiskLevel::Irreversible, what)
    }
}
