//! Names of environments and categories, and permissions.

use serde_json::json;

use crate::registry::*;

#[test]
fn environment_names_are_short_lower_case_words() {
    for good in ["development", "qa", "eu-west_2", "a"] {
        assert_eq!(Environment::new(good).unwrap().as_str(), good);
    }
    let long = "a".repeat(33);
    for bad in ["", "Production", "2nd", "-a", "a b", "ä", long.as_str()] {
        assert!(Environment::new(bad).is_err(), "{bad}");
    }
    assert!(Environment::new("a".repeat(32)).is_ok());
}

#[test]
fn development_staging_and_production_are_predefined() {
    let known = Environments::default();
    let names: Vec<_> = known.iter().map(Environment::as_str).collect();
    assert_eq!(names, ["development", "production", "staging"]);
    assert_eq!(Environment::PRODUCTION, "production".parse().unwrap());
}

#[test]
fn other_environments_must_be_declared() {
    let mut known = Environments::default();
    let unknown = known.require("qa").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no environment `qa`");
    assert_eq!(unknown.known, ["development", "production", "staging"]);
    known.declare("qa".parse().unwrap());
    assert_eq!(known.require("qa").unwrap().as_str(), "qa");
    let typo = known.require("prodction").unwrap_err();
    assert_eq!(typo.nearest.as_deref(), Some("production"));
}

#[test]
fn permissions_are_nouns_with_verbs() {
    for good in [
        "files:read",
        "chat:write.public",
        "admin",
        "crm:read:own",
        "a-b.c_d:x",
    ] {
        assert_eq!(good.parse::<Permission>().unwrap().to_string(), good);
    }
    let long = format!("a:{}", "b".repeat(99));
    for bad in [
        "",
        ":read",
        "files:",
        "files::read",
        "Files:read",
        "files read",
        "1:a",
        &long,
    ] {
        assert!(bad.parse::<Permission>().is_err(), "{bad}");
    }
}

#[test]
fn the_vocabulary_has_slack_scopes_and_built_in_permissions() {
    let vocabulary = Vocabulary::default();
    for word in SLACK_SCOPES.iter().chain(&OWN_PERMISSIONS) {
        let permission: Permission = word.parse().unwrap();
        assert!(vocabulary.contains(&permission), "{word}");
    }
    assert!(SLACK_SCOPES.is_sorted());
    for common in [
        "channels:history",
        "chat:write",
        "users:read.email",
        "search:read",
    ] {
        assert!(SLACK_SCOPES.contains(&common), "{common}");
    }
}

#[test]
fn an_unknown_permission_suggests_the_nearest() {
    let mut vocabulary = Vocabulary::default();
    let unknown = vocabulary.require("channel:history").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no permission `channel:history`"
    );
    assert_eq!(unknown.nearest.as_deref(), Some("channels:history"));
    assert!(vocabulary.require("crm:read").is_err());
    vocabulary.declare("crm:read".parse().unwrap());
    assert!(vocabulary.require("crm:read").is_ok());
}

#[test]
fn words_are_validated_on_deserialization() {
    let good: Environment = serde_json::from_value(json!("qa")).unwrap();
    assert_eq!(json!(good), json!("qa"));
    let error = super::read_error::<Environment>(json!("QA"));
    assert!(
        error.contains("`QA` is not the name of an environment"),
        "{error}"
    );
    let error = super::read_error::<Permission>(json!("files read"));
    assert!(error.contains("is not a permission"), "{error}");
    let error = super::read_error::<CategoryName>(json!("Slack"));
    assert!(error.contains("is not the name of a category"), "{error}");
}
