//! What a rule looks at. It is read off the rule's syntax tree once, at load: which parts of the
//! context a decision has to provide, which names to check against the tools, and which words are
//! compared with what. Wherever the tree says less than it could, the rule counts as looking at
//! everything.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Var};

/// Where the arguments of a call stand in the context.
pub(crate) const INPUT: &str = "input";
/// Where what the run did before stands in the context.
pub(crate) const SESSION: &str = "session";
/// Whether a person has approved the call.
pub(crate) const APPROVED: &str = "approved";

/// What a rule looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Analysis {
    /// Which parts of the context.
    pub(crate) mentions: Mentions,
    /// Every attribute of the context it names, from the context down.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// The texts it compares attributes of the context with.
    pub(crate) words: Vec<(Vec<String>, String)>,
    /// Whether it ends with an approval: it says `unless { context.approved }`, and what else it
    /// says is the same with and without one.
    pub(crate) ends_with_approval: bool,
}

/// Parts of the context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    attributes: Names,
    arguments: Names,
    of_session: Names,
}

/// Some names, or all there are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    Some(BTreeSet<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Names {
    fn add(&mut self, name: &str) {
        if let Self::Some(names) = self {
            names.insert(name.to_owned());
        }
    }

    fn add_all(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
            (Self::Some(names), Self::Some(others)) => names.extend(others.iter().cloned()),
        }
    }

    fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(names) => names.contains(name),
        }
    }
}

impl Mentions {
    /// Whether an attribute of the context is looked at.
    pub(crate) fn attribute(&self, name: &str) -> bool {
        self.attributes.contains(name)
    }

    /// Whether an argument of the call is looked at.
    pub(crate) fn argument(&self, name: &str) -> bool {
        self.arguments.contains(name)
    }

    /// Whether a part of what the run did before is looked at.
    pub(crate) fn of_session(&self, name: &str) -> bool {
        self.of_session.contains(name)
    }

    /// Looks also at what `other` looks at.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.attributes.add_all(&other.attributes);
        self.arguments.add_all(&other.arguments);
        self.of_session.add_all(&other.of_session);
    }

    fn everything(&mut self) {
        self.attributes = Names::All;
        self.arguments = Names::All;
        self.of_session = Names::All;
    }
}

/// Reads what a rule looks at.
pub(crate) fn analyse(policy: &Policy) -> Analysis {
    let mut analysis = Analysis::default();
    match policy.to_pst() {
        Ok(tree) => {
            let clauses = tree.body().clauses().iter();
            let (until_approved, others): (Vec<_>, Vec<_>) = clauses.partition(is_unless_approved);
            for Clause::When(expression) | Clause::Unless(expression) in others {
                analysis.expression(expression);
            }
            analysis.ends_with_approval =
                !until_approved.is_empty() && !analysis.mentions.attribute(APPROVED);
            for Clause::When(expression) | Clause::Unless(expression) in until_approved {
                analysis.expression(expression);
            }
        }
        Err(_) => analysis.mentions.everything(),
    }
    analysis
}

fn is_unless_approved(clause: &&Clause) -> bool {
    let Clause::Unless(condition) = clause else {
        return false;
    };
    let path = attribute_path(condition);
    path.is_some_and(|(variable, names)| *variable == Var::Context && names == [APPROVED])
}

/// The variable and the names of a rule whose only condition is an attribute.
pub(crate) fn path_of(policy: &Policy) -> Option<(&'static str, Vec<String>)> {
    let tree = policy.to_pst().ok()?;
    let [Clause::When(expression)] = tree.body().clauses().as_slice() else {
        return None;
    };
    let (variable, path) = attribute_path(expression)?;
    let variable = match variable {
        Var::Principal => "principal",
        Var::Resource => "resource",
        Var::Action => "action",
        Var::Context => "context",
    };
    Some((variable, path))
}

/// The variable an attribute belongs to, and the names that lead to it.
fn attribute_path(expression: &Expr) -> Option<(&Var, Vec<String>)> {
    let mut names = Vec::new();
    let mut expression = expression;
    loop {
        match expression {
            Expr::GetAttr { expr, attr } => {
                names.push(attr.to_string());
                expression = expr;
            }
            Expr::Var(variable) => {
                names.reverse();
                return Some((variable, names));
            }
            _ => return None,
        }
    }
}

impl Analysis {
    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Literal(_) => {}
            Expr::Var(_) => self.path(expression, &[]),
            Expr::GetAttr { expr, .. } => {
                if attribute_path(expression).is_some() {
                    self.path(expression, &[]);
                } else {
                    self.expression(expr);
                }
            }
            Expr::HasAttr { expr, attrs } => {
                if attribute_path(expr).is_some() {
                    let names: Vec<String> = attrs.iter().map(ToString::to_string).collect();
                    self.path(expr, &names);
                } else {
                    self.expression(expr);
                }
            }
            Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => self.expression(expr),
            Expr::BinaryOp { op, left, right } => {
                self.comparison(*op, left, right);
                self.expression(left);
                self.expression(right);
            }
            Expr::Is { expr, in_expr, .. } => {
                self.expression(expr);
                if let Some(expression) = in_expr {
                    self.expression(expression);
                }
            }
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => {
                for part in [cond, then_expr, else_expr] {
                    self.expression(part);
                }
            }
            Expr::Set(items) => {
                for item in items {
                    self.expression(item);
                }
            }
            Expr::Record(fields) => {
                for field in fields.values() {
                    self.expression(field);
                }
            }
            _ => self.mentions.everything(),
        }
    }

    /// Notes an attribute of a variable, with the names that are asked for below it.
    fn path(&mut self, expression: &Expr, below: &[String]) {
        let Some((Var::Context, mut path)) = attribute_path(expression) else {
            return;
        };
        path.extend_from_slice(below);
        match path.as_slice() {
            [] => self.mentions.everything(),
            [attribute] if attribute == INPUT => {
                self.mentions.attributes.add(INPUT);
                // `context has input` needs no argument, but says nothing either.
                self.mentions.arguments = Names::All;
            }
            [attribute] if attribute == SESSION => {
                self.mentions.attributes.add(SESSION);
                self.mentions.of_session = Names::All;
            }
            [attribute, rest @ ..] => {
                self.mentions.attributes.add(attribute);
                match (attribute.as_str(), rest) {
                    (INPUT, [argument, ..]) => self.mentions.arguments.add(argument),
                    (SESSION, [part, ..]) => self.mentions.of_session.add(part),
                    _ => {}
                }
            }
        }
        if !path.is_empty() {
            self.paths.insert(path);
        }
    }

    /// Notes which texts an attribute of the context is compared with.
    fn comparison(&mut self, operator: BinaryOp, left: &Expr, right: &Expr) {
        let pairs = match operator {
            BinaryOp::Eq | BinaryOp::NotEq => [(left, right), (right, left)],
            BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny => {
                [(right, left), (left, right)]
            }
            _ => return,
        };
        for (attribute, words) in pairs {
            let Some((Var::Context, path)) = attribute_path(attribute) else {
                continue;
            };
            let mut texts = Vec::new();
            collect_texts(words, &mut texts);
            let found = texts.into_iter().map(|text| (path.clone(), text));
            self.words.extend(found);
        }
    }
}

/// The text literals of an expression: itself, or the items of a set.
fn collect_texts(expression: &Expr, texts: &mut Vec<String>) {
    match expression {
        Expr::Literal(Literal::String(text)) => texts.push(text.to_string()),
        Expr::Set(items) => {
            for item in items {
                collect_texts(item, texts);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
