//! Checks rules against the tools, and says what is wrong in the words of tools and arguments. The
//! types are checked by the policy language's own validator; beyond it, names behind `has` and
//! words that are compared with a closed set must exist, because a misspelt one would never match
//! and no one would notice.

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

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<PolicyError>,
    pub(crate) warnings: Vec<PolicyWarning>,
}

/// What the parser had to say.
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

/// Where a finding of the policy language begins and ends.
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

/// One rule and the tools it is about.
struct Checker<'a> {
    text: &'a str,
    draft: &'a Draft,
    tools: &'a Tools,
    scope: Vec<&'a Tool>,
}

impl Checker<'_> {
    /// The policy language's own validation. What is among the errors already is not said again.
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
        let mut said: Vec<Problem> = errors.iter().map(|error| error.problem.clone()).collect();
        for error in result.validation_errors() {
            // The validator finds the same mistake once for every tool.
            let error = self.explain(error);
            if !said.contains(&error.problem) {
                said.push(error.problem.clone());
                errors.push(error);
            }
        }
        for warning in result.validation_warnings() {
            match warning {
                // Where there is no tool, nothing can apply; where there is a mistake, it is why.
                ValidationWarning::ImpossiblePolicy(_) => {
                    if !self.scope.is_empty() && errors.is_empty() {
                        errors.push(self.error(self.draft.start, Problem::NeverApplies).hint(
                            "its conditions contradict each other, or no tool has what they ask for",
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

    /// A finding of the validator, in the words of tools and arguments.
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
                Some("numbers with places are compared so: x.lessThan(decimal(\"1.5\"))".to_owned())
            } else {
                error.help().map(|help| help.to_string())
            };
            found
        })
    }

    fn unknown_action(&self, start: usize, snippet: &str) -> Option<PolicyError> {
        let known: BTreeSet<&str> = self.tools.action_names().collect();
        // The place may be that of the whole rule; the names in it are known all the same.
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
                "risk belongs to each call, not to the tool: write when {{ context.risk == \"{name}\" }}"
            ))
        } else {
            error
                .near(name, known)
                .hint("an action is a tool, Action::\"tools\" or Action::\"category:...\"")
        })
    }

    /// The actions the rule names anywhere.
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
        // The place may be that of what is done with the attribute; then it is looked for in there.
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
        let hint = format!("ask first: {} has {last} && ...", owner.join("."));
        Some(self.error(start, problem).hint(hint))
    }

    /// Names of the context and words that no tool in the rule's scope has.
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

    /// An attribute of the context that some tool of the scope does not have.
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
                error.hint("it is declared, but rules cannot see values of its type")
            } else if lacking < all {
                error.hint(format!(
                    "{lacking} of the {all} tools that the rule is about lack it; name those it is \
                     meant for, or ask first: context.{} has {name}",
                    before.join(".")
                ))
            } else if all > 1 {
                error.hint(format!(
                    "none of the {all} tools that the rule is about has it"
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

/// A set's items, or the shape itself.
fn item(shape: &Shape) -> &Shape {
    match shape {
        Shape::Set(item) => item,
        other => other,
    }
}

/// The variable and the names that a piece of a rule such as `context.input.amount` consists of.
fn snippet_path(snippet: &str) -> Option<(&'static str, Vec<String>)> {
    path_of(&snippet_rule(snippet)?)
}

/// The attributes of the context that a piece of a rule names.
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

/// The validator's sentence without the rule's id, which stands elsewhere.
fn without_policy(message: &str) -> String {
    let rest = message.strip_prefix("for policy `");
    let rest = rest.and_then(|rest| rest.split_once("`, "));
    rest.map_or(message, |(_, rest)| rest).to_owned()
}

impl Draft {
    /// Where an attribute is first named in the rule.
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
