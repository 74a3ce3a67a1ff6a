//! The precedence of sources, and the documented rules of approval.

use serde_json::{Map, Value, json};
use windlass_spec::RiskLevel::{self, Irreversible, Reversible, ReversibleWithDelay};
use windlass_spec::{
    Confidence, Field, NonEmptyText, Signature, ToolAttributes, ToolName, ToolSpecification, Type,
};

use super::super::{
    Annotations, Assessment, KnownTool, Source, ToolRisk, Trust, assess, categorize_action_risk,
    requires_approval, requires_approval_below,
};

fn base(tool: &KnownTool<'_>) -> (RiskLevel, Source) {
    let Assessment { level, source, .. } = assess(tool, &Map::new());
    (level, source)
}

fn hints(read_only: Option<bool>, destructive: Option<bool>) -> Annotations {
    Annotations {
        read_only_hint: read_only,
        destructive_hint: destructive,
    }
}

#[test]
fn source_with_the_highest_precedence_sets_the_base() {
    let mut tool = KnownTool::named("delete_file");
    assert_eq!(base(&tool), (Irreversible, Source::Words));
    tool.http_method = Some("GET");
    assert_eq!(base(&tool), (Reversible, Source::HttpMethod));
    tool.annotations = hints(Some(false), Some(false));
    tool.trust = Trust::Trusted;
    assert_eq!(
        base(&tool),
        (ReversibleWithDelay, Source::TrustedAnnotations)
    );
    tool.declared = Some(Irreversible);
    assert_eq!(base(&tool), (Irreversible, Source::Declaration));
    tool.operator_override = Some(Reversible);
    assert_eq!(base(&tool), (Reversible, Source::Override));
    let sources: Vec<Source> = assess(&tool, &Map::new())
        .evidence
        .into_iter()
        .map(|evidence| evidence.source)
        .collect();
    assert_eq!(
        sources,
        [
            Source::Override,
            Source::Declaration,
            Source::TrustedAnnotations,
            Source::HttpMethod,
            Source::Words
        ]
    );
}

#[test]
fn http_method_sets_the_base() {
    for (method, level) in [
        ("GET", Reversible),
        ("head", Reversible),
        ("POST", ReversibleWithDelay),
        ("PUT", ReversibleWithDelay),
        ("PATCH", ReversibleWithDelay),
        ("DELETE", Irreversible),
        ("BREW", Irreversible),
    ] {
        let tool = KnownTool {
            http_method: Some(method),
            ..KnownTool::named("get_thing")
        };
        assert_eq!(base(&tool), (level, Source::HttpMethod), "{method}");
    }
}

#[test]
fn words_can_raise_a_changing_http_method() {
    let tool = KnownTool {
        http_method: Some("POST"),
        ..KnownTool::named("make_purchase")
    };
    assert_eq!(base(&tool), (Irreversible, Source::Words));
}

#[test]
fn annotations_of_a_trusted_server_have_the_defaults_of_the_protocol() {
    for (read_only, destructive, level) in [
        (Some(true), None, Some(Reversible)),
        (Some(true), Some(true), Some(Reversible)),
        (Some(false), Some(false), Some(ReversibleWithDelay)),
        (None, Some(false), Some(ReversibleWithDelay)),
        (Some(false), None, Some(Irreversible)),
        (None, Some(true), Some(Irreversible)),
        (None, None, None),
    ] {
        let tool = KnownTool {
            annotations: hints(read_only, destructive),
            trust: Trust::Trusted,
            ..KnownTool::named("frobnicate")
        };
        let expected = match level {
            Some(level) => (level, Source::TrustedAnnotations),
            None => (Irreversible, Source::Nothing),
        };
        assert_eq!(base(&tool), expected, "{read_only:?} {destructive:?}");
    }
}

#[test]
fn words_of_an_untrusted_server_do_not_lower_the_risk() {
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let tool = KnownTool {
            is_from_server: true,
            trust,
            ..KnownTool::named("get_thing")
        };
        let expected = match trust {
            Trust::Trusted => (Reversible, Source::Words),
            Trust::Untrusted => (Irreversible, Source::Nothing),
        };
        assert_eq!(base(&tool), expected);
    }
}

#[test]
fn annotations_of_an_untrusted_server_only_raise() {
    let liar = KnownTool {
        annotations: hints(Some(true), Some(false)),
        ..KnownTool::named("delete_file")
    };
    assert_eq!(base(&liar), (Irreversible, Source::Words));
    let honest = KnownTool {
        annotations: hints(None, Some(true)),
        ..KnownTool::named("get_file")
    };
    assert_eq!(base(&honest), (Irreversible, Source::UntrustedAnnotations));
    let writes = KnownTool {
        annotations: hints(Some(false), None),
        ..KnownTool::named("get_file")
    };
    assert_eq!(
        base(&writes),
        (ReversibleWithDelay, Source::UntrustedAnnotations)
    );
    // Annotations also raise a declared level: the server may know more than the author of the specification.
    let declared = KnownTool {
        declared: Some(Reversible),
        ..honest
    };
    assert_eq!(base(&declared).0, Irreversible);
}

fn specification(attributes: ToolAttributes) -> ToolSpecification {
    let signature = Signature::new(
        vec![
            Field::required("sql", Type::Text),
            Field::optional("dry_run", Type::Boolean),
        ],
        Type::Text,
    )
    .unwrap();
    ToolSpecification::new(
        "execute_sql".parse::<ToolName>().unwrap(),
        NonEmptyText::try_from("Execute SQL.".to_owned()).unwrap(),
        signature,
    )
    .with_attributes(attributes)
    .unwrap()
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn sql_raises_a_declared_reversible_tool() {
    let tool = ToolRisk::of_specification(&specification(ToolAttributes {
        risk: Some(Reversible),
        ..ToolAttributes::default()
    }));
    let level = |sql: &str| tool.with_arguments(&arguments(json!({"sql": sql}))).level;
    assert_eq!(level("SELECT 1"), Reversible);
    assert_eq!(level("INSERT INTO t VALUES (1)"), ReversibleWithDelay);
    assert_eq!(level("DROP TABLE t"), Irreversible);
}

#[test]
fn a_dry_run_lowers_only_where_it_is_declared() {
    let drop = arguments(json!({"sql": "DROP TABLE t", "dry_run": true}));
    let undeclared = ToolRisk::of_specification(&specification(ToolAttributes::default()));
    assert_eq!(undeclared.with_arguments(&drop).level, Irreversible);
    let declared = ToolRisk::of_specification(&specification(ToolAttributes {
        dry_run_argument: Some("dry_run".to_owned()),
        ..ToolAttributes::default()
    }));
    let assessment = declared.with_arguments(&drop);
    assert_eq!(
        (assessment.level, assessment.source),
        (Reversible, Source::DryRun)
    );
    for real in [json!(false), json!("true"), json!(1), json!(null)] {
        let arguments = arguments(json!({"sql": "DROP TABLE t", "dry_run": real}));
        assert_eq!(declared.with_arguments(&arguments).level, Irreversible);
    }
}

#[test]
fn an_override_is_final() {
    for level in RiskLevel::ALL {
        let tool = KnownTool {
            operator_override: Some(level),
            declared: Some(Irreversible),
            dry_run_argument: Some("dry_run"),
            annotations: hints(Some(false), Some(true)),
            ..KnownTool::named("delete_everything")
        };
        let arguments = arguments(json!({"sql": "DROP TABLE t", "dry_run": true}));
        let assessment = assess(&tool, &arguments);
        assert_eq!(
            (assessment.level, assessment.source),
            (level, Source::Override)
        );
    }
}

#[test]
fn documented_risk_functions_return_documented_results() {
    let risk = categorize_action_risk("delete_file", &json!({"path": "/data/important.txt"}));
    assert_eq!(risk, Irreversible);
    let confidence = |number: f64| Confidence::try_from(number).unwrap();
    assert!(requires_approval(risk, confidence(0.95)));
    assert!(requires_approval(Irreversible, confidence(1.0)));
    assert!(requires_approval(ReversibleWithDelay, confidence(0.79)));
    assert!(!requires_approval(ReversibleWithDelay, confidence(0.8)));
    assert!(!requires_approval(Reversible, confidence(0.0)));
    assert!(requires_approval_below(
        ReversibleWithDelay,
        confidence(1.0),
        f64::NAN
    ));
    assert_eq!(
        categorize_action_risk("read_file", &json!(null)),
        Reversible
    );
}

#[test]
fn assessment_round_trips_through_json() {
    let tool = KnownTool::named("get_rows");
    let assessment = assess(&tool, &arguments(json!({"sql": "DELETE FROM t"})));
    assert_eq!(
        serde_json::to_value(&assessment).unwrap(),
        json!({
            "level": "irreversible",
            "evidence": [
                {"source": "words", "level": "reversible", "what": "the name says `get`"},
                {"source": "arguments", "level": "irreversible", "what": "`sql`: the SQL deletes rows"},
            ],
            "source": "arguments",
        })
    );
    let text = serde_json::to_string(&assessment).unwrap();
    assert_eq!(
        serde_json::from_str::<Assessment>(&text).unwrap(),
        assessment
    );
    assert_eq!(
        assessment.to_string(),
        "irreversible by arguments; words: reversible, the name says `get`; \
         arguments: irreversible, `sql`: the SQL deletes rows"
    );
}
