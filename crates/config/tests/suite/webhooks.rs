//! The settings of webhooks, and the mistakes in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_config::{WebhookEvent, WebhookSecretSource, WebhookTarget};

use super::{configured, load_errors, load_warnings};

#[test]
fn all_settings_of_webhooks_are_read() {
    let configuration = configured(
        r#"
[webhooks.all]
url = "https://hooks.example.org/x"
secret = "env:HOOK_SECRET"

[webhooks.file]
url = "http://127.0.0.1:8080/"
secret_file = "hook.secret"
events = ["approval.asked", "run.ended"]
arguments = true
server = "https://windlass.example.org/"
expiring_seconds = 60
timeout_seconds = 2
attempts = 3
retry_seconds = 7
enabled = false

[webhooks.program]
command = ["bin/hook", "--once", ""]
environment = ["LEVEL"]
"#,
    );
    let [all, file, program] = configuration.webhooks() else {
        panic!("{:?}", configuration.webhooks());
    };
    assert_eq!(
        (all.name.as_str(), all.declared_in.as_str()),
        ("all", "windlass.toml")
    );
    assert_eq!(all.events, BTreeSet::from(WebhookEvent::ALL));
    assert!(all.is_enabled && !all.has_arguments && all.server.is_none());
    assert_eq!(
        (all.attempts, all.first_retry),
        (10, Duration::from_secs(5))
    );
    assert_eq!(
        (all.timeout, all.expiring),
        (Duration::from_secs(10), Duration::from_secs(900))
    );
    let WebhookTarget::Url {
        secret: WebhookSecretSource::Variable(variable),
        ..
    } = &all.target
    else {
        panic!("{all:?}");
    };
    assert_eq!(variable.variable(), Some("HOOK_SECRET"));

    assert_eq!(
        file.target,
        WebhookTarget::Url {
            url: "http://127.0.0.1:8080/".to_owned(),
            secret: WebhookSecretSource::File(PathBuf::from("/project/hook.secret")),
        }
    );
    let events = [WebhookEvent::ApprovalAsked, WebhookEvent::RunEnded];
    assert_eq!(file.events, BTreeSet::from(events));
    assert!(!file.is_enabled && file.has_arguments);
    assert_eq!(file.server.as_deref(), Some("https://windlass.example.org"));
    assert_eq!(
        (file.attempts, file.first_retry),
        (3, Duration::from_secs(7))
    );
    assert_eq!(
        (file.timeout, file.expiring),
        (Duration::from_secs(2), Duration::from_secs(60))
    );

    assert_eq!(
        program.target,
        WebhookTarget::Command {
            command: ["bin/hook", "--once", ""].map(str::to_owned).to_vec(),
            directory: Path::new("/project").to_owned(),
            environment: vec!["LEVEL".to_owned()],
        }
    );
}

#[test]
fn a_webhook_has_one_target_and_its_secret_outside() {
    for (text, expected) in [
        ("enabled = true", "needs a `url` or a `command`"),
        ("url = \"https://a.example\"", "needs a secret"),
        (
            "url = \"https://a.example\"\nsecret = \"whsec_abc\"",
            "must not contain secrets",
        ),
        (
            "url = \"https://a.example\"\nsecret = \"Bearer env:A\"",
            "must not contain secrets",
        ),
        (
            "url = \"https://a.example\"\nsecret = \"env:A\"\nsecret_file = \"b\"",
            "both a `secret` and a `secret_file`",
        ),
        (
            "url = \"https://a.example\"\nsecret = \"env:A\"\ncommand = [\"b\"]",
            "both a `command` and a `url`",
        ),
        ("command = []", "the command is empty"),
        ("command = [\"\"]", "the command is empty"),
        (
            "command = [\"a\"]\nsecret = \"env:A\"",
            "only for webhooks with a `url`",
        ),
        ("command = [\"a\"]\nevents = []", "no event is sent"),
        (
            "command = [\"a\"]\nevents = [\"run.started\"]",
            "run.started",
        ),
        ("command = [\"a\"]\nattempts = 0", "1 to 20"),
    ] {
        let errors = load_errors(&format!("[webhooks.x]\n{text}"));
        assert!(errors.contains(expected), "{text}: {errors}");
    }
    assert!(load_errors("[webhooks.X]\ncommand = [\"a\"]").contains("name of a webhook"));
}

#[test]
fn an_address_that_is_not_encrypted_is_a_warning() {
    let warnings = load_warnings("[webhooks.x]\nurl = \"http://a.example\"\nsecret = \"env:A\"");
    assert!(warnings.contains("unencrypted"), "{warnings}");
}
