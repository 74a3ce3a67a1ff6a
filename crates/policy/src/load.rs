//! Loads policies: text and tool specifications in, [`Policies`] that can decide out, or all errors in
//! the text. Errors are found at load and not during a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cedar_policy::{Authorizer, Effect, Policy, PolicySet, pst};
use windlass_spec::text::{TextUse, escape_line};
use windlass_spec::{SecurityLevel, ToolSpecification};

use crate::analysis::{Analysis, analyse_tree};
use crate::approvers::{self, Demands};
use crate::cache::AnswerCache;
use crate::check;
use crate::error::{Internal, PolicyError, PolicyPosition, PolicyWarning, Problem};
use crate::example;
use crate::floor::FloorSettings;
use crate::schema::{EntityTypes, Tools};
use crate::slice::{Slice, can_apply, compiled_for_tool};
use crate::source::place;

/// The policies that apply if an operator sets none.
pub const DEFAULT_POLICIES: &str = include_str!("../default.cedar");

/// The annotations a rule may carry.
const ANNOTATIONS: [&str; 6] = [
    "id",
    "reason",
    "security_level",
    "approvers",
    "expires",
    "escalate",
];

/// Rules that are checked against the tools and ready to decide.
#[derive(Debug, Clone)]
pub struct Policies {
    pub(crate) authorizer: Authorizer,
    pub(crate) types: EntityTypes,
    pub(crate) tools: Tools,
    pub(crate) slices: HashMap<String, Slice>,
    pub(crate) floor: FloorSettings,
    pub(crate) answers: AnswerCache,
    /// The environments that rules name.
    pub(crate) environments: BTreeSet<String>,
    rules: BTreeMap<String, Rule>,
    warnings: Vec<PolicyWarning>,
}

/// A rule, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its `@id`.
    pub id: String,
    /// Whether it permits or forbids.
    pub effect: RuleEffect,
    /// Its `@reason`: shown to people when it decides.
    pub reason: Option<String>,
    /// Its `@security_level`: the minimum level of an approval when it decides.
    pub security_level: Option<SecurityLevel>,
    /// Its `@approvers`, `@expires` and `@escalate`.
    pub(crate) demands: Demands,
    /// Where it starts.
    pub place: PolicyPosition,
    /// Its text.
    pub text: String,
}

/// The effect of a rule on the calls it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// It permits them.
    Permit,
    /// It forbids them, whatever other rules permit.
    Forbid,
}

/// The rules of a text, not checked yet. Parsing takes most of the time of loading, so a caller that needs
/// [`ParsedPolicies::named_tools`] first parses once.
#[derive(Debug, Clone)]
pub struct ParsedPolicies {
    text: String,
    drafts: Vec<Draft>,
}

/// A rule that is being checked.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) policy: Policy,
    /// Its syntax tree, which Cedar makes by parsing its text again.
    tree: Option<pst::Template>,
    pub(crate) analysis: Analysis,
    pub(crate) id: Option<String>,
    /// Where its text starts and ends.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Draft {
    /// The syntax tree.
    pub(crate) fn tree(&self) -> Result<pst::Template, Internal> {
        match &self.tree {
            Some(tree) => Ok(tree.clone()),
            None => Ok(self.policy.to_pst().map_err(Internal::new)?.body().clone()),
        }
    }

    /// An error in this rule.
    pub(crate) fn error(&self, source: &str, offset: usize, problem: Problem) -> PolicyError {
        PolicyError::new(Some(place(source, offset)), self.id.as_deref(), problem)
    }
}

impl Policies {
    /// Parses rules, checks them against the tools and runs their examples.
    ///
    /// # Errors
    /// All errors, in the order of the text.
    pub fn load<'a>(
        text: &str,
        specifications: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<Self, Vec<PolicyError>> {
        let tools = Tools::new(specifications)?;
        Self::check(text, &parse(text)?, tools)
    }

    fn check(text: &str, drafts: &[Draft], tools: Tools) -> Result<Self, Vec<PolicyError>> {
        let types = EntityTypes::new().map_err(|error| vec![error.into()])?;
        let mut errors = identify(text, drafts);
        errors.extend(annotations(text, drafts));
        let (examples, mut bad_examples) = example::read(text, drafts, &tools);
        errors.append(&mut bad_examples);
        let checked = check::check(text, drafts, &tools, &types);
        errors.extend(checked.errors);
        if !errors.is_empty() {
            return Err(in_order(errors));
        }

        let mut policies =
            Self::of(tools, types, text, drafts).map_err(|error| vec![error.into()])?;
        policies.warnings = checked.warnings;
        let failed = example::run(text, &examples, drafts, &policies);
        if failed.is_empty() {
            Ok(policies)
        } else {
            Err(in_order(failed))
        }
    }

    /// The policies that apply if an operator sets none.
    ///
    /// # Errors
    /// If the specifications contradict each other.
    pub fn defaults<'a>(
        specifications: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<Self, Vec<PolicyError>> {
        Self::load(DEFAULT_POLICIES, specifications)
    }

    /// The settings of the floor.
    #[must_use]
    pub fn floor(&self) -> &FloorSettings {
        &self.floor
    }

    /// The same policies over a floor with these settings.
    #[must_use]
    pub fn with_floor(mut self, settings: FloorSettings) -> Self {
        self.floor = settings;
        self
    }

    /// The rule of that id.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// All rules, in the order of the text.
    #[must_use]
    pub fn rules(&self) -> Vec<&Rule> {
        let mut rules: Vec<&Rule> = self.rules.values().collect();
        rules.sort_by_key(|rule| rule.place);
        rules
    }

    /// Warnings about the text.
    #[must_use]
    pub fn warnings(&self) -> &[PolicyWarning] {
        &self.warnings
    }

    fn of(
        tools: Tools,
        types: EntityTypes,
        text: &str,
        drafts: &[Draft],
    ) -> Result<Self, Internal> {
        let mut rules = BTreeMap::new();
        let mut slices: HashMap<String, Slice> = tools
            .iter()
            .map(|tool| (tool.name.clone(), Slice::default()))
            .collect();
        for draft in drafts {
            let rule = Rule::new(text, draft);
            let policy = compiled_for_tool(draft.tree()?, &rule.id)?;
            let scope = tools.iter();
            for tool in scope.filter(|tool| can_apply(&draft.policy, tool, &types)) {
                if let Some(slice) = slices.get_mut(&tool.name) {
                    slice.add(policy.clone(), &draft.analysis)?;
                }
            }
            rules.insert(rule.id.clone(), rule);
        }
        for slice in slices.values_mut() {
            slice.finish()?;
        }
        Ok(Self {
            authorizer: Authorizer::new(),
            types,
            tools,
            slices,
            floor: FloorSettings::default(),
            answers: AnswerCache::default(),
            environments: drafts.iter().flat_map(environments).collect(),
            rules,
            warnings: Vec::new(),
        })
    }
}

impl ParsedPolicies {
    /// Parses rules.
    ///
    /// # Errors
    /// The syntax errors of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<PolicyError>> {
        Ok(Self {
            drafts: parse(text)?,
            text: text.to_owned(),
        })
    }

    /// The tools that the text names, in its rules and in their examples, including groups of tools under
    /// their names in rules. Whether the tools exist is not checked.
    ///
    /// # Errors
    /// If Cedar does not accept the names of our own types.
    pub fn named_tools(&self) -> Result<BTreeSet<String>, Vec<PolicyError>> {
        let types = EntityTypes::new().map_err(|error| vec![error.into()])?;
        let literals = self.drafts.iter();
        let literals = literals.flat_map(|draft| draft.policy.entity_literals());
        let actions = literals.filter(|entity| types.is_action(entity));
        let named = actions.map(|action| action.id().unescaped().to_owned());
        Ok(named.chain(example::named_tools(&self.text)).collect())
    }

    /// Checks the rules against the tools and runs their examples, as [`Policies::load`] does.
    ///
    /// # Errors
    /// All errors, in the order of the text.
    pub fn load<'a>(
        &self,
        specifications: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<Policies, Vec<PolicyError>> {
        Policies::check(&self.text, &self.drafts, Tools::new(specifications)?)
    }
}

/// The tools that a text names, as [`ParsedPolicies::named_tools`] returns them.
///
/// # Errors
/// The syntax errors of the text. Whether the tools exist is not checked.
pub fn named_tools(text: &str) -> Result<BTreeSet<String>, Vec<PolicyError>> {
    ParsedPolicies::parse(text)?.named_tools()
}

impl Rule {
    fn new(text: &str, draft: &Draft) -> Self {
        let policy = &draft.policy;
        Self {
            id: draft.id.clone().unwrap_or_default(),
            effect: match policy.effect() {
                Effect::Permit => RuleEffect::Permit,
                Effect::Forbid => RuleEffect::Forbid,
            },
            reason: policy.annotation("reason").map(on_one_line),
            security_level: policy
                .annotation("security_level")
                .and_then(|word| word.parse().ok()),
            demands: Demands::of(policy),
            place: place(text, draft.start),
            text: text
                .get(draft.start..draft.end)
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

/// The environments that a rule names.
fn environments(draft: &Draft) -> impl Iterator<Item = String> {
    let words = draft.analysis.words.iter();
    words
        .filter(|(path, _)| *path == ["environment"])
        .map(|(_, word)| word.clone())
}

/// Sorts errors: those about the tools first, then in the order of the file.
fn in_order(mut errors: Vec<PolicyError>) -> Vec<PolicyError> {
    errors.sort_by_key(|error| error.place);
    errors
}

/// The rules of a text, in order.
fn parse(text: &str) -> Result<Vec<Draft>, Vec<PolicyError>> {
    let text = &approvers::for_parser(text);
    let set: PolicySet = text
        .parse()
        .map_err(|errors| check::syntax_errors(text, &errors))?;
    let mut templates: Vec<PolicyError> = set
        .templates()
        .map(|template| {
            let at = text.find(&template.to_cedar()).unwrap_or(0);
            let id = template.annotation("id").map(on_one_line);
            PolicyError::new(Some(place(text, at)), id.as_deref(), Problem::Template)
                .hint("replace the slot with the principal or resource")
        })
        .collect();
    if !templates.is_empty() {
        templates.sort_by_key(|error| error.place);
        return Err(templates);
    }
    let mut policies: Vec<&Policy> = set.policies().collect();
    // The parser names them `policy0`, `policy1` and so on, in the order of the text.
    policies.sort_by_key(|policy| {
        let number = policy.id().to_string();
        number.trim_start_matches("policy").parse::<usize>().ok()
    });
    let mut drafts = Vec::with_capacity(policies.len());
    let mut searched = 0;
    for policy in policies {
        let own = policy.to_cedar().unwrap_or_default();
        let rest = text.get(searched..).unwrap_or_default();
        let start = searched + rest.find(&own).unwrap_or(0);
        searched = start + own.len();
        let id = policy.annotation("id").map(str::trim);
        let tree = policy.to_pst().ok().map(|tree| tree.body().clone());
        drafts.push(Draft {
            analysis: analyse_tree(tree.as_ref()),
            tree,
            id: id.filter(|id| !id.is_empty()).map(on_one_line),
            policy: policy.clone(),
            start,
            end: searched,
        });
    }
    Ok(drafts)
}

/// An annotation without line breaks and hidden characters: people read it in messages of Windlass, and a project
/// that is not trusted may have written it.
fn on_one_line(annotation: &str) -> String {
    let words: Vec<&str> = annotation.split_whitespace().collect();
    escape_line(&words.join(" "), TextUse::Display).into_owned()
}

/// Checks that every rule has its own id.
fn identify(text: &str, drafts: &[Draft]) -> Vec<PolicyError> {
    let mut errors = Vec::new();
    let mut taken: HashMap<&str, usize> = HashMap::new();
    for draft in drafts {
        let Some(id) = draft.id.as_deref() else {
            errors.push(
                draft
                    .error(text, draft.start, Problem::MissingId)
                    .hint("write @id(\"a-name-for-the-rule\") before it"),
            );
            continue;
        };
        match taken.get(id) {
            Some(&first) => {
                let first_line = place(text, first).line;
                errors.push(
                    draft
                        .error(text, draft.start, Problem::DuplicateId { first_line })
                        .hint("decisions refer to rules by @id; give each rule its own"),
                );
            }
            None => {
                taken.insert(id, draft.start);
            }
        }
    }
    errors
}

/// Checks that annotations are known or clearly foreign, and have valid values.
fn annotations(text: &str, drafts: &[Draft]) -> Vec<PolicyError> {
    let mut errors = Vec::new();
    for draft in drafts {
        for (key, value) in draft.policy.annotations() {
            let at = draft.find(text, &format!("@{key}"));
            if matches!(key, "match" | "not_match") {
                let problem = Problem::UnknownAnnotation(key.to_owned());
                errors.push(draft.error(text, at, problem).hint(format!(
                    "write examples as comments: // @{key} {{\"tool\": \"...\", \"input\": {{}}}}"
                )));
            } else if !ANNOTATIONS.contains(&key) {
                let problem = Problem::UnknownAnnotation(key.to_owned());
                let error = draft.error(text, at, problem).near(key, ANNOTATIONS);
                // An annotation for other programs is allowed, a misspelt one is not.
                errors.extend((!error.nearest.is_empty()).then_some(error));
            } else if key == "security_level" && value.parse::<SecurityLevel>().is_err() {
                let words = SecurityLevel::ALL.map(SecurityLevel::as_str);
                let problem = Problem::UnknownSecurityLevel(value.to_owned());
                errors.push(
                    draft
                        .error(text, at, problem)
                        .near(value, words)
                        .hint(format!("write one of {}", words.join(", "))),
                );
            } else {
                errors.extend(approvers::check(text, draft, key, value));
            }
        }
    }
    errors
}

impl Draft {
    /// The position of a text in the rule; the start of the rule if it does not occur.
    pub(crate) fn find(&self, source: &str, piece: &str) -> usize {
        let own = source.get(self.start..self.end).unwrap_or_default();
        self.start + own.find(piece).unwrap_or(0)
    }
}
