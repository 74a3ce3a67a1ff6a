//! Finds which data a rule uses. It is read from the rule's syntax tree once, at load: the parts of the
//! context that a decision has to provide, the names to check against the tools, and the texts that
//! attributes are compared with. Where the tree is not conclusive, the rule counts as using everything.

use std::collections::BTreeSet;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Var};
use cedar_policy::{Policy, pst};

/// The attribute of the context with the arguments of the call.
pub(crate) const INPUT: &str = "input";
/// The attribute of the context with the history of the run.
pub(crate) const SESSION: &str = "session";
/// The attribute of the context that states whether the call is approved.
pub(crate) const APPROVED: &str = "approved";

/// The data that a rule uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Analysis {
    /// The parts of the context it uses.
    pub(crate) mentions: Mentions,
    /// Every attribute path of the context that it names.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// The texts that it compares attributes of the context with.
    pub(crate) words: Vec<(Vec<String>, String)>,
    /// Whether an approval lifts it: it has `unless { context.approved }`, and its other conditions do
    /// not depend on the approval.
    pub(crate) is_lifted_by_approval: bool,
}

/// Parts of the context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    attributes: Names,
    arguments: Names,
    of_session: Names,
}

/// A set of names, or all names.
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
    /// Whether an attribute of the context is used.
    pub(crate) fn attribute(&self, name: &str) -> bool {
        self.attributes.contains(name)
    }

    /// Whether an argument of the call is used.
    pub(crate) fn argument(&self, name: &str) -> bool {
        self.arguments.contains(name)
    }

    /// Whether a part of the session is used.
    pub(crate) fn of_session(&self, name: &str) -> bool {
        self.of_session.contains(name)
    }

    /// Adds everything that `other` uses.
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

/// Finds which data a rule uses.
pub(crate) fn analyse(policy: &Policy) -> Analysis {
    let tree = policy.to_pst().ok();
    analyse_tree(tree.as_ref().map(pst::Policy::body))
}

/// Finds which data a rule uses, from its syntax tree; everything if it has none.
pub(crate) fn analyse_tree(tree: Option<&pst::Template>) -> Analysis {
    let mut analysis = Analysis::default();
    match tree {
        Some(tree) => {
            let clauses = tree.clauses().iter();
            let (until_approved, others): (Vec<_>, Vec<_>) = clauses.partition(is_unless_approved);
            for Clause::When(expression) | Clause::Unless(expression) in others {
                analysis.expression(expression);
            }
            analysis.is_lifted_by_approval =
                !until_approved.is_empty() && !analysis.mentions.attribute(APPROVED);
            for Clause::When(expression) | Clause::Unless(expression) in until_approved {
                analysis.expression(expression);
            }
        }
        None => analysis.mentions.everything(),
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

/// The variable of an attribute, and the names that lead to it.
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

    /// Records an attribute of a variable, with the names that are accessed below it.
    fn path(&mut self, expression: &Expr, below: &[String]) {
        let Some((Var::Context, mut path)) = attribute_path(expression) else {
            return;
        };
        path.extend_from_slice(below);
        match path.as_slice() {
            [] => self.mentions.everything(),
            [attribute] if attribute == INPUT => {
                self.mentions.attributes.add(INPUT);
                // `context has input` needs no argument, but using all is safe.
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

    /// Records the texts that an attribute of the context is compared with.
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
