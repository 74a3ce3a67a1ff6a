//! Checks rules against the tools, and reports errors in terms of tools and arguments. Cedar's own
//! validator checks the types. In addition, names after `has` and texts compared with a closed set must
//! exist, because a misspelt one would silently never match.

use std::collections::BTreeSet;

use cedar_policy::{
    EntityUid, ParseErrors, Policy, PolicySet, ValidationError, ValidationMode, ValidationWarning,
    Validator,
};
use miette::Diagnostic;
use windlass_spec::RiskLevel;

use crate::analysis::{INPUT, analyse, path_of};
use crate::error::{Internal, PolicyError, PolicyWarning, Problem};
use crate::load::Draft;
use crate::schema::{EntityTypes, Tool, Tools, entity_attributes};
use crate::shape::Shape;
use crate::slice::can_apply;
use crate::source::place;

/// The errors and warnings.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<PolicyError>,
    pub(crate) warnings: Vec<PolicyWarning>,
}

/// The syntax errors of the parser.
pub(crate) fn syntax_errors(text: &str, errors: &ParseErrors) -> Vec<PolicyError> {
    errors
        .iter()
        .map(|error| {
            let at = first_label(error).map_or(0, |(start, _)| start);
            let mut found = PolicyError::new(
                Some(place(text, at)),
                None,
                Problem::Syntax(error.to_string()),
            );
            found.hint = error.help().map(|help| help.to_string());
            found
        })
        .collect()
}

/// The start and end of a finding of Cedar.
fn first_label(finding: &dyn Diagnostic) -> Option<(usize, usize)> {
    let label = finding.labels()?.next()?;
    Some((label.offset(), label.offset() + label.len()))
}

/// Checks every rule.
pub(crate) fn check(text: &str, drafts: &[Draft], tools: &Tools, types: &EntityTypes) -> Findings {
    let mut findings = Findings::default();
    let schema = match tools.schema() {
        Ok(schema) => schema,
        Err(error) => {
            findings.errors.push(error.into());
            return findings;
        }
    };
    let validator = Validator::new(schema);
    for draft in drafts {
        let checker = Checker {
            text,
            draft,
            tools,
            scope: tools
                .iter()
                .filter(|tool| can_apply(&draft.policy, tool, types))
                .collect(),
        };
        let mut errors = checker.names();
        checker.validate(&validator, &mut errors, &mut findings.warnings);
        findings.errors.append(&mut errors);
    }
    findings
}

/// One rule and the tools it applies to.
struct Checker<'a> {
    text: &'a str,
    draft: &'a Draft,
    tools: &'a Tools,
    scope: Vec<&'a Tool>,
}

impl Checker<'_> {
    /// Runs Cedar's own validation. Errors that were already reported are skipped.
    fn validate(
        &self,
        validator: &Validator,
        errors: &mut Vec<PolicyError>,
        warnings: &mut Vec<PolicyWarning>,
    ) {
        let set = match PolicySet::from_policies([self.draft.policy.clone()]) {
            Ok(set) => set,
            Err(error) => {
                errors.push(Internal::new(error).into());
                return;
            }
        };
        let result = validator.validate(&set, ValidationMode::Strict);
        let mut reported: Vec<Problem> = errors.iter().map(|error| error.problem.clone()).collect();
        for error in result.validation_errors() {
            // The validator reports the same error once for every tool.
            let error = self.explain(error);
            if !reported.contains(&error.problem) {
                reported.push(error.problem.clone());
                errors.push(error);
            }
        }
        for warning in result.validation_warnings() {
            match warning {
                // Without tools nothing can apply; with an error, the error is the cause.
                ValidationWarning::ImpossiblePolicy(_) => {
                    if !self.scope.is_empty() && errors.is_empty() {
                        errors.push(self.error(self.draft.start, Problem::NeverApplies).hint(
                            "its conditions contradict each other, or no tool has what they require",
                        ));
                    }
                }
                ValidationWarning::InvalidActionApplication(_) => {
                    warnings.push(self.warning(warning, "no tool belongs to its action"));
                }
                other => {
                    warnings.push(self.warning(other, &without_policy(&other.to_string())));
                }
            }
        }
    }

    fn warning(&self, warning: &ValidationWarning, message: &str) -> PolicyWarning {
        let at = first_label(warning).map_or(self.draft.start, |(start, _)| start);
        PolicyWarning {
            place: Some(place(self.text, at)),
            rule: self.draft.id.clone().unwrap_or_default(),
            message: message.to_owned(),
        }
    }

    fn error(&self, offset: usize, problem: Problem) -> PolicyError {
        self.draft.error(self.text, offset, problem)
    }

    /// Explains a finding of the validator in terms of tools and arguments.
    fn explain(&self, error: &ValidationError) -> PolicyError {
        let (start, end) = first_label(error).unwrap_or((self.draft.start, self.draft.end));
        let snippet = self.text.get(start..end).unwrap_or_default();
        let found = match error {
            ValidationError::UnrecognizedActionId(_) => self.unknown_action(start, snippet),
            ValidationError::UnrecognizedEntityType(_) => self.unknown_type(start, snippet),
            ValidationError::UnsafeAttributeAccess(_) => self.unknown_attribute(start, snippet),
            ValidationError::UnsafeOptionalAttributeAccess(_) => self.maybe_absent(start, snippet),
            _ => None,
        };
        found.unwrap_or_else(|| {
            let message = without_policy(&error.to_string());
            let problem = match error {
                ValidationError::UnexpectedType(_)
                | ValidationError::IncompatibleTypes(_)
                | ValidationError::NonLitExtConstructor(_)
                | ValidationError::EmptySetForbidden(_) => Problem::WrongType(message.clone()),
                _ => Problem::Refused(message.clone()),
            };
            let about_decimals = message.contains("decimal");
            let mut found = self.error(start, problem);
            found.hint = if about_decimals {
                Some("compare decimal numbers like this: x.lessThan(decimal(\"1.5\"))".to_owned())
            } else {
                error.help().map(|help| help.to_string())
            };
            found
        })
    }

    fn unknown_action(&self, start: usize, snippet: &str) -> Option<PolicyError> {
        let known: BTreeSet<&str> = self.tools.action_names().collect();
        // The location may be that of the whole rule; then the name is searched in it.
        let unknown = snippet.parse::<EntityUid>().ok().or_else(|| {
            let mut named = self.actions();
            named.retain(|action| !known.contains(action.id().unescaped()));
            named.into_iter().next()
        })?;
        let name = unknown.id().unescaped();
        let start = if snippet.parse::<EntityUid>().is_ok() {
            start
        } else {
            self.draft.find(self.text, &format!("\"{name}\""))
        };
        let error = self.error(start, Problem::UnknownTool(name.to_owned()));
        Some(if name.parse::<RiskLevel>().is_ok() {
            error.hint(format!(
                "risk is a property of each call, not of the tool: write when {{ context.risk == \"{name}\" }}"
            ))
        } else {
            error
                .near(name, known)
                .hint("an action is a tool, Action::\"tools\" or Action::\"category:...\"")
        })
    }

    /// The actions that the rule names.
    fn actions(&self) -> Vec<EntityUid> {
        let mut named = self.draft.policy.entity_literals();
        named.retain(|uid| uid.type_name().basename() == "Action");
        named
    }

    fn unknown_type(&self, start: usize, snippet: &str) -> Option<PolicyError> {
        const TYPES: [&str; 4] = ["User", "Tenant", "Agent", "Action"];
        let named = self.draft.policy.entity_literals().into_iter();
        let name = match snippet.parse::<EntityUid>() {
            Ok(uid) => uid.type_name().to_string(),
            Err(_) => named
                .map(|uid| uid.type_name().to_string())
                .find(|name| !TYPES.contains(&name.as_str()))?,
        };
        let start = start + snippet.find(&name).unwrap_or(0);
        Some(
            self.error(start, Problem::UnknownEntityType(name.clone()))
                .near(&name, TYPES)
                .hint("principals are User in Tenant, resources are Agent, actions are Action"),
        )
    }

    fn unknown_attribute(&self, start: usize, snippet: &str) -> Option<PolicyError> {
        let Some((variable, names)) = snippet_path(snippet) else {
            let paths = snippet_paths(snippet);
            return paths.iter().find_map(|path| self.unresolved(path, start));
        };
        if variable == "context" {
            return self.unresolved(&names, start);
        }
        let problem = Problem::UnknownAttribute(format!("{variable}.{}", names.join(".")));
        let known = entity_attributes(variable).iter().copied();
        Some(self.error(start, problem).near(names.last()?, known))
    }

    fn maybe_absent(&self, start: usize, snippet: &str) -> Option<PolicyError> {
        // The location may be that of an expression around the attribute; then the attribute is searched
        // in it.
        let paths = match snippet_path(snippet) {
            Some(("context", names)) => vec![names],
            Some(_) => return None,
            None => snippet_paths(snippet),
        };
        let path = paths.into_iter().find(|path| {
            let mut tools = self.scope.iter();
            tools.any(|tool| tool.context.may_be_absent(path))
        })?;
        let (last, before) = path.split_last()?;
        let problem = Problem::MaybeAbsent(format!("context.{}", path.join(".")));
        let owner = ["context"]
            .into_iter()
            .chain(before.iter().map(String::as_str));
        let owner: Vec<&str> = owner.collect();
        let hint = format!("check first: {} has {last} && ...", owner.join("."));
        Some(self.error(start, problem).hint(hint))
    }

    /// Checks that the names and texts of the rule exist for some tool in its scope.
    fn names(&self) -> Vec<PolicyError> {
        let mut errors = Vec::new();
        if self.scope.is_empty() {
            return errors;
        }
        for path in &self.draft.analysis.paths {
            let mut tools = self.scope.iter();
            if tools.all(|tool| tool.context.resolve(path).is_err()) {
                let last = path.last().map_or("", String::as_str);
                let at = self.draft.find_name(self.text, last);
                errors.extend(self.unresolved(path, at));
            }
        }
        for (path, word) in &self.draft.analysis.words {
            let mut known: BTreeSet<&str> = BTreeSet::new();
            let mut is_closed = !self.scope.is_empty();
            for tool in &self.scope {
                match tool.context.resolve(path).map(item) {
                    Ok(Shape::Words(words)) => known.extend(words.iter().map(String::as_str)),
                    Ok(_) => is_closed = false,
                    Err(_) => {}
                }
            }
            if is_closed && !known.is_empty() && !known.contains(word.as_str()) {
                let problem = Problem::UnknownWord {
                    attribute: format!("context.{}", path.join(".")),
                    word: word.clone(),
                };
                let at = self.draft.find(self.text, &format!("\"{word}\""));
                let all: Vec<&str> = known.iter().copied().collect();
                let error = self.error(at, problem).near(word, known);
                errors.push(error.hint(format!("it is one of {}", all.join(", "))));
            }
        }
        errors
    }

    /// The error for an attribute of the context that some tool in the scope does not have.
    fn unresolved(&self, path: &[String], at: usize) -> Option<PolicyError> {
        let lacks = |tool: &&&Tool| tool.context.resolve(path).is_err();
        let tool = self.scope.iter().find(lacks)?;
        let (depth, _) = tool.context.resolve(path).err()?;
        let name = path.get(depth)?;
        let before = path.get(..depth)?;
        let (first, argument) = path.split_first()?;
        let error = if first == INPUT && depth > 0 {
            let problem = Problem::UnknownArgument {
                tool: tool.name.clone(),
                argument: argument.join("."),
            };
            let error = self.error(at, problem);
            let (all, lacking) = (self.scope.len(), self.scope.iter().filter(lacks).count());
            if depth == 1 && tool.declared.contains(name) {
                error.hint("it is declared, but rules cannot use values of its type")
            } else if lacking < all {
                error.hint(format!(
                    "{lacking} of the {all} tools that the rule applies to lack it; name the tools it is \
                     meant for, or check first: context.{} has {name}",
                    before.join(".")
                ))
            } else if all > 1 {
                error.hint(format!(
                    "none of the {all} tools that the rule applies to has it"
                ))
            } else {
                error
            }
        } else {
            let problem = Problem::UnknownAttribute(format!("context.{}", path.join(".")));
            self.error(at, problem)
        };
        let owners = self
            .scope
            .iter()
            .filter_map(|tool| tool.context.resolve(before).ok());
        let mut known: BTreeSet<&str> = owners.flat_map(Shape::names).collect();
        known.remove(name.as_str());
        Some(error.near(name, known))
    }
}

/// The items of a set, or the shape itself.
fn item(shape: &Shape) -> &Shape {
    match shape {
        Shape::Set(item) => item,
        other => other,
    }
}

/// The variable and the names of a snippet such as `context.input.amount`.
fn snippet_path(snippet: &str) -> Option<(&'static str, Vec<String>)> {
    path_of(&snippet_rule(snippet)?)
}

/// The attributes of the context that a snippet names.
fn snippet_paths(snippet: &str) -> Vec<Vec<String>> {
    let rule = snippet_rule(snippet);
    rule.map_or(Vec::new(), |rule| {
        analyse(&rule).paths.into_iter().collect()
    })
}

fn snippet_rule(snippet: &str) -> Option<Policy> {
    let rule = format!("permit(principal, action, resource) when {{ {snippet} }};");
    Policy::parse(None, rule).ok()
}

/// The validator's message without the rule's id, which is shown separately.
fn without_policy(message: &str) -> String {
    let rest = message.strip_prefix("for policy `");
    let rest = rest.and_then(|rest| rest.split_once("`, "));
    rest.map_or(message, |(_, rest)| rest).to_owned()
}

impl Draft {
    /// The position where the rule first names an attribute.
    fn find_name(&self, source: &str, name: &str) -> usize {
        let own = source.get(self.start..self.end).unwrap_or_default();
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        own.match_indices(name)
            .find(|(at, _)| {
                let before = own.get(..*at).and_then(|text| text.chars().next_back());
                let after = own
                    .get(at + name.len()..)
                    .and_then(|text| text.chars().next());
                !is_part(before) && !is_part(after)
            })
            .map_or(self.start, |(at, _)| self.start + at)
    }
}
