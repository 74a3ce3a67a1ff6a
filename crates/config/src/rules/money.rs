//! Checks that a price is complete, and that the record of a run is not removed before its payloads.

use crate::form::period;
use crate::mistake::ConfigMistake;
use crate::tree::{Node, dotted};

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    for (model, node) in tree.entries(&["prices"]) {
        if node.has_invalid() {
            continue;
        }
        let path = ["prices", model];
        required(node, &path, mistakes);
        match (node.get("long"), node.get("long_above")) {
            (Some(long), above) => {
                required(long, &[&path[..], &["long"]].concat(), mistakes);
                if above.is_none() {
                    missing(long, &[&path[..], &["long_above"]].concat(), mistakes);
                }
            }
            (None, Some(above)) => {
                missing(above, &[&path[..], &["long"]].concat(), mistakes);
            }
            (None, None) => {}
        }
    }
    retention(tree, mistakes);
}

fn required(node: &Node, path: &[&str], mistakes: &mut Vec<ConfigMistake>) {
    for key in ["input", "output"] {
        if node.get(key).is_none() {
            missing(node, &[path, &[key]].concat(), mistakes);
        }
    }
}

fn missing(near: &Node, path: &[&str], mistakes: &mut Vec<ConfigMistake>) {
    let mistake = ConfigMistake::error(&near.origin, dotted(path), "this price is missing");
    let help = "an entry replaces that of the list that ships; write 0 for what costs nothing";
    mistakes.push(mistake.help(help.to_owned()));
}

fn retention(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let kept = |key: &str| {
        let node = tree.at(&["retention", key])?;
        Some((node, period(node.text()?).ok()?))
    };
    let (Some((payloads_node, payloads)), Some((node, audit))) = (kept("payloads"), kept("audit"))
    else {
        return;
    };
    let is_shorter = match (audit, payloads) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(audit), Some(payloads)) => audit < payloads,
    };
    if is_shorter {
        let message = format!(
            "the record of a run cannot be removed before its payloads, which are kept as set at {}",
            payloads_node.origin
        );
        let mistake = ConfigMistake::error(&node.origin, "retention.audit", message);
        let help = "set `retention.audit` to a longer period, or to \"never\"";
        mistakes.push(mistake.help(help.to_owned()));
    }
}
