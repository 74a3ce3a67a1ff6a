//! The rules for the issuer of tokens: what it needs, and that nobody on the way can replace its keys.

use windlass_spec::server::is_unencrypted;

use crate::mistake::ConfigMistake;
use crate::tree::{Node, dotted};

pub(super) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let Some(oidc) = tree.get("oidc").filter(|node| node.table().is_some()) else {
        return;
    };
    let mut error = |node: &Node, path: &[&str], message: &str, help: &str| {
        let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
        mistakes.push(mistake.help(help.to_owned()));
    };
    for (key, help) in [
        ("issuer", "write issuer = \"https://...\""),
        (
            "audience",
            "write audience = \"...\": the name of this server at the issuer",
        ),
        (
            "roles",
            "write roles = { admins = [\"admin\"] }, with the roles of the issuer",
        ),
    ] {
        if oidc.get(key).is_none() {
            let message = format!("an issuer needs `{key}`");
            error(oidc, &["oidc"], &message, help);
        }
    }
    if let Some(issuer) = oidc.get("issuer")
        && issuer.text().is_some_and(is_unencrypted)
    {
        let message = "the keys of an issuer without encryption can be replaced on the way";
        error(issuer, &["oidc", "issuer"], message, "use https://");
    }
    if let (Some(claim), Some(_)) = (oidc.get("tenant_claim"), oidc.get("tenant")) {
        let message = "an issuer cannot have both `tenant` and `tenant_claim`";
        error(
            claim,
            &["oidc", "tenant_claim"],
            message,
            "remove one of the two",
        );
    }
}
