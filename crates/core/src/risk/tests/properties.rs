//! Properties that hold for all inputs.

use proptest::prelude::*;
use serde_json::{Map, Value};
use windlass_spec::{Confidence, RiskLevel};

use super::super::{
    Annotations, KnownTool, Source, ToolRisk, Trust, assess, requires_approval,
    requires_approval_below, shell, sql,
};

fn level() -> impl Strategy<Value = RiskLevel> {
    prop::sample::select(RiskLevel::ALL.to_vec())
}

fn confidence() -> impl Strategy<Value = Confidence> {
    (0.0..=1.0).prop_map(|number: f64| Confidence::try_from(number).unwrap())
}

fn name() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "get", "delete", "list", "update", "or", "and", "merge", "items", "deleted", "run", "sql",
        "pay", "file", "Send", "X", "é", "ﬀ", "_", "-", "", "un", "re", "query", "format", "disk",
        "s", "ing",
    ]);
    let made = prop::collection::vec(word, 0..6).prop_map(|words| words.join("_"));
    prop_oneof![made, any::<String>(), "\\PC{0,40}"]
}

fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "sql",
        "query",
        "command",
        "method",
        "path",
        "url",
        "amount",
        "to",
        "recursive",
        "force",
        "dry_run",
        "delete_source",
        "x",
    ])
    .prop_map(str::to_owned);
    prop_oneof![3 => known, 1 => any::<String>()]
}

fn text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "DROP TABLE t",
        "SELECT 1",
        "rm -rf /",
        "ls",
        "DELETE",
        "*",
        "https://a.b/?data=x",
        "everyone",
        "5",
        "mutation { a }",
        "$(",
        "'",
        "javascript:x",
        "https://",
        "http://ü:é@",
    ])
    .prop_map(str::to_owned);
    prop_oneof![
        known,
        any::<String>(),
        "[$()`'\"|&;<>\\\\ a-z{}]{0,30}",
        "https://\\PC{0,40}"
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((key(), json()), 0..5).prop_map(|fields| fields.into_iter().collect())
}

prop_compose! {
    fn tool()(
        name in name(),
        description in prop_oneof![Just(String::new()), name(), any::<String>()],
        schema in prop::option::of(json()),
        declared in prop::option::of(level()),
        read_only_hint in any::<Option<bool>>(),
        destructive_hint in any::<Option<bool>>(),
        trusted in any::<bool>(),
        http_method in prop::option::of(prop::sample::select(vec!["GET", "POST", "DELETE", "X"])),
    ) -> OwnedTool {
        let annotations = Annotations { read_only_hint, destructive_hint };
        let trust = if trusted { Trust::Trusted } else { Trust::Untrusted };
        OwnedTool { name, description, schema, declared, annotations, trust, http_method }
    }
}

#[derive(Debug, Clone)]
struct OwnedTool {
    name: String,
    description: String,
    schema: Option<Value>,
    declared: Option<RiskLevel>,
    annotations: Annotations,
    trust: Trust,
    http_method: Option<&'static str>,
}

impl OwnedTool {
    fn known(&self) -> KnownTool<'_> {
        KnownTool {
            name: &self.name,
            description: &self.description,
            schema: self.schema.as_ref(),
            declared: self.declared,
            annotations: self.annotations,
            trust: self.trust,
            http_method: self.http_method,
            ..KnownTool::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn arguments_never_lower(tool in tool(), arguments in arguments()) {
        let tool = ToolRisk::of(&tool.known());
        let assessment = tool.with_arguments(&arguments);
        prop_assert!(assessment.level >= tool.base().level);
        let deciding = assessment.evidence.iter().any(|evidence| {
            evidence.source == assessment.source && evidence.level == assessment.level
        });
        prop_assert!(deciding, "{assessment}");
        prop_assert_eq!(assessment, tool.with_arguments(&arguments));
    }

    #[test]
    fn an_untrusted_annotation_never_lowers(tool in tool(), arguments in arguments()) {
        let mut known = tool.known();
        known.trust = Trust::Untrusted;
        let with = assess(&known, &arguments).level;
        known.annotations = Annotations::default();
        let without = assess(&known, &arguments).level;
        prop_assert!(with >= without);
    }

    #[test]
    fn override_is_final_for_all_other_inputs(
        tool in tool(), arguments in arguments(), level_set in level(),
    ) {
        let mut known = tool.known();
        known.operator_override = Some(level_set);
        known.dry_run_argument = Some("dry_run");
        let assessment = assess(&known, &arguments);
        prop_assert_eq!((assessment.level, assessment.source), (level_set, Source::Override));
    }

    #[test]
    fn undeclared_dry_run_never_lowers(tool in tool(), mut arguments in arguments()) {
        let tool = ToolRisk::of(&tool.known());
        arguments.shift_remove("dry_run");
        let without = tool.with_arguments(&arguments).level;
        arguments.insert("dry_run".to_owned(), Value::Bool(true));
        prop_assert!(tool.with_arguments(&arguments).level >= without);
    }

    #[test]
    fn name_in_unknown_letters_is_irreversible(name in "[\u{400}-\u{4ff}\u{4e00}-\u{4fff}]{1,12}") {
        let tool = ToolRisk::of(&KnownTool::named(&name));
        prop_assert_eq!(tool.base().level, RiskLevel::Irreversible);
    }

    #[test]
    fn more_risk_or_less_confidence_never_weakens_approval(
        risk in level(), graver in level(),
        confidence in confidence(), lower in confidence(),
        threshold in any::<f64>(),
    ) {
        let (risk, graver) = (risk.min(graver), risk.max(graver));
        let (lower, confidence) = (confidence.min(lower), confidence.max(lower));
        prop_assert!(requires_approval(graver, lower) >= requires_approval(risk, confidence));
        prop_assert!(
            requires_approval_below(graver, lower, threshold)
                >= requires_approval_below(risk, confidence, threshold)
        );
    }

    #[test]
    fn any_text_is_assessed_without_panic(text in text()) {
        sql::assess(&text);
        sql::assess_if_sql(&text);
        shell::assess(&text);
    }
}
