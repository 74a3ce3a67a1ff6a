//! Restricts the file of a project before it is merged over the files of the user and the administrator. What they
//! set, a project can only make stricter. A project that is not trusted can also not loosen what is built in, start
//! programs or send data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use windlass_spec::{RiskLevel, ToolName};

use crate::effect::{KeyEffect, KeyPower, Stricter, Unset};
use crate::form::Form;
use crate::keys::{Key, ROOT, Shape};
use crate::mistake::ConfigMistake;
use crate::origin::Layer;
use crate::show::shown_value;
use crate::tree::{Content, Node, Table, child_path, dotted};

/// How a project's file is read.
#[derive(Clone, Copy)]
pub struct ProjectRules<'r> {
    /// Whether the project is trusted.
    pub is_trusted: bool,
    /// Resolves the links in a path, so that directories can be compared.
    pub resolve: &'r dyn Fn(&Path) -> PathBuf,
}

impl std::fmt::Debug for ProjectRules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProjectRules")
            .field("is_trusted", &self.is_trusted)
            .finish_non_exhaustive()
    }
}

/// A setting of a project that needs trust.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UntrustedSetting {
    /// The key with dots in it.
    pub key: String,
    /// What it allows.
    pub power: KeyPower,
    /// Its value. Values that look like secrets are hidden.
    pub value: Value,
    /// The line in the file.
    pub line: Option<usize>,
}

/// What was taken out of a project's file.
#[derive(Debug, Default)]
pub(crate) struct Restricted {
    /// The settings that need trust.
    pub(crate) untrusted: Vec<UntrustedSetting>,
    /// The policies, if they only restrict other policies.
    pub(crate) policies: Option<Node>,
    /// The least risk of tools: an untrusted project can only raise it.
    pub(crate) least_risks: BTreeMap<ToolName, RiskLevel>,
    /// The tools that only the project lists in a category.
    pub(crate) categorized_tools: BTreeSet<ToolName>,
}

/// Restricts the tree of a project's file that is going to be merged over `under`.
pub(crate) fn restrict(
    tree: &mut Node,
    under: &Node,
    rules: ProjectRules<'_>,
    mistakes: &mut Vec<ConfigMistake>,
) -> Restricted {
    let mut restrictor = Restrictor {
        rules,
        root: under,
        mistakes,
        found: Restricted::default(),
    };
    if let Content::Table(table) = &mut tree.content {
        restrictor.keys(table, ROOT.fixed(), Some(under), &[]);
    }
    restrictor.found
}

struct Restrictor<'r> {
    rules: ProjectRules<'r>,
    root: &'r Node,
    mistakes: &'r mut Vec<ConfigMistake>,
    found: Restricted,
}

/// Whether a value stays in the tree.
type Kept = bool;

impl Restrictor<'_> {
    fn keys(&mut self, table: &mut Table, keys: &[Key], under: Option<&Node>, path: &[&str]) {
        table.retain(
            |name, node| match keys.iter().find(|key| key.name == name) {
                Some(key) => {
                    let under = under.and_then(|under| under.get(name));
                    self.key(node, key, under, &child_path(path, name))
                }
                None => true,
            },
        );
    }

    fn key(&mut self, node: &mut Node, key: &Key, under: Option<&Node>, path: &[&str]) -> Kept {
        match key.effect {
            KeyEffect::Harmless => true,
            KeyEffect::ByKey => self.entries(node, key.shape, under, path),
            KeyEffect::NewEntry(power) => self.new_entries(node, key.shape, power, under, path),
            KeyEffect::Stacks => self.policies(node, under),
            KeyEffect::OwnerOnly => {
                let message = "a project's file must not set this";
                let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
                let help = "set it in your own configuration: ~/.config/windlass/windlass.toml";
                self.mistakes.push(mistake.help(help.to_owned()));
                false
            }
            KeyEffect::Needs(power, stricter) => match (key.shape, &mut node.content) {
                // Each entry of a map is one value.
                (Shape::Map(map), Content::Table(table)) => {
                    table.retain(|name, node| {
                        let under = under.and_then(|under| under.get(name));
                        self.value(
                            node,
                            map.each,
                            (power, stricter),
                            under,
                            &child_path(path, name),
                        )
                    });
                    !table.is_empty()
                }
                _ => self.value(node, key.shape, (power, stricter), under, path),
            },
        }
    }

    /// The keys of a table, or of each entry of a map. Tables without any key left are removed.
    fn entries(
        &mut self,
        node: &mut Node,
        shape: Shape,
        under: Option<&Node>,
        path: &[&str],
    ) -> Kept {
        let Content::Table(table) = &mut node.content else {
            return true;
        };
        if table.is_empty() {
            return true;
        }
        self.keys(table, shape.fixed(), under, path);
        if let Shape::Map(map) = shape {
            let is_fixed = |name: &str| map.fixed.iter().any(|key| key.name == name);
            table.retain(|name, node| {
                let under = under.and_then(|under| under.get(name));
                is_fixed(name) || self.entries(node, map.each, under, &child_path(path, name))
            });
        }
        !table.is_empty()
    }

    fn new_entries(
        &mut self,
        node: &mut Node,
        shape: Shape,
        power: KeyPower,
        under: Option<&Node>,
        path: &[&str],
    ) -> Kept {
        let (Shape::Map(map), Content::Table(table)) = (shape, &mut node.content) else {
            return true;
        };
        table.retain(|name, node| {
            let path = child_path(path, name);
            let exists = under.and_then(|under| under.get(name));
            let is_tool = path.first() == Some(&"categories");
            if let (None, true, Ok(tool)) = (exists, is_tool, name.parse::<ToolName>()) {
                self.found.categorized_tools.insert(tool);
            }
            if exists.is_some() || self.rules.is_trusted {
                return self.entries(node, map.each, exists, &path);
            }
            // A tool that is switched off cannot be called, whatever its category.
            let is_off = node.get("enabled").and_then(Node::boolean) == Some(false);
            match (&mut node.content, is_off && is_tool) {
                (Content::Table(table), true) => table.retain(|key, _| key == "enabled"),
                _ => self.report(node, power, &path),
            }
            is_off && is_tool
        });
        !table.is_empty()
    }

    /// Policies of a project replace the built-in ones if the project is trusted. They restrict all others.
    fn policies(&mut self, node: &Node, under: Option<&Node>) -> Kept {
        if !self.rules.is_trusted {
            self.report(node, KeyPower::LoosensRules, &["policies"]);
        }
        let replaces = self.rules.is_trusted && under.is_none();
        if !replaces {
            self.found.policies = Some(node.clone());
        }
        replaces
    }

    fn value(
        &mut self,
        node: &mut Node,
        shape: Shape,
        (power, stricter): (KeyPower, Stricter),
        under: Option<&Node>,
        path: &[&str],
    ) -> Kept {
        if node.content == Content::Invalid {
            return true;
        }
        let compared = self.compared(under, path);
        let set_by_owner = compared
            .as_ref()
            .is_some_and(|under| under.origin.layer() != Layer::BuiltIn);
        let is_order = !matches!(stricter, Stricter::Never | Stricter::Only(_));
        if self.rules.is_trusted && !(set_by_owner && is_order) {
            return true;
        }
        let names_files = power == KeyPower::RunsPrograms || is_path(shape);
        if self.is_stricter(node, shape, (stricter, names_files), compared.as_ref()) {
            return true;
        }
        if self.rules.is_trusted {
            let set = compared.as_ref().map(|under| under.origin.to_string());
            let set = set.unwrap_or_default();
            let message = match stricter {
                Stricter::Same => format!("a project cannot change this; it is set at {set}"),
                _ => format!("a project can only make this stricter than it is at {set}"),
            };
            self.mistakes
                .push(ConfigMistake::warning(&node.origin, dotted(path), message));
        } else {
            self.report(node, power, path);
        }
        self.keep_strict_part(node, (stricter, names_files), compared.as_ref(), path)
    }

    /// The value that a value is compared with. A principal that is not named has what `*` has. What is not set for
    /// an environment is as it is in general.
    fn compared(&self, under: Option<&Node>, path: &[&str]) -> Option<Node> {
        let in_general = match path {
            [
                "categories",
                category,
                "environment_overrides",
                _,
                rest @ ..,
            ] => Some([&["categories", *category][..], rest].concat()),
            [
                "categories",
                category,
                "tools",
                tool,
                "environment_overrides",
                _,
                rest @ ..,
            ] => Some([&["categories", *category, "tools", *tool][..], rest].concat()),
            _ => None,
        };
        if let Some(in_general) = in_general {
            return under.or_else(|| self.root.at(&in_general)).cloned();
        }
        let ["principals", name, rest @ ..] = path else {
            return under.cloned();
        };
        let everybody = self.root.at(&["principals", "*"]);
        let everybody = everybody.and_then(|node| node.at(rest));
        match (rest, under, everybody) {
            (["permissions"], Some(own), Some(all)) if *name != "*" => {
                let items = [own.items(&[]), all.items(&[])].concat();
                Some(Node::new(Content::List(items), own.origin.clone()))
            }
            (_, Some(own), _) => Some(own.clone()),
            (_, None, Some(all)) => Some(all.clone()),
            // A principal that is not named has no permission.
            (["permissions"], None, None) => {
                let principals = self.root.get("principals")?;
                Some(Node::new(
                    Content::List(Vec::new()),
                    principals.origin.clone(),
                ))
            }
            (_, None, None) => None,
        }
    }

    fn is_stricter(
        &self,
        node: &Node,
        shape: Shape,
        (stricter, names_files): (Stricter, bool),
        under: Option<&Node>,
    ) -> bool {
        let is_order_of_paths = matches!(stricter, Stricter::Inside);
        if under.is_some_and(|under| is_same(node, under, names_files)) && !is_order_of_paths {
            return true;
        }
        let numbers = (node.number(), under.and_then(Node::number));
        match stricter {
            Stricter::Never | Stricter::Same => false,
            Stricter::Only(word) => match &node.content {
                // What the user left out of a list stays out.
                Content::List(items) => items.iter().all(|item| {
                    item.text() == Some(word)
                        && under.is_none_or(|under| contains(under, item, false))
                }),
                _ => node.text() == Some(word),
            },
            Stricter::Lower => match numbers {
                (Some(new), Some(old)) => new <= old,
                (new, None) => new.is_some() && under.is_none(),
                _ => false,
            },
            Stricter::LowerThanSet => {
                matches!(numbers, (Some(new), Some(old)) if new <= old)
            }
            Stricter::Higher => matches!(numbers, (Some(new), Some(old)) if new >= old),
            Stricter::LaterWord => {
                let Shape::Words(words) = shape else {
                    return false;
                };
                let place = |node: &Node| words.iter().position(|word| Some(*word) == node.text());
                match under {
                    Some(under) => place(node) >= place(under),
                    None => place(node) == words.len().checked_sub(1),
                }
            }
            Stricter::False { unset } => {
                let old = under.and_then(Node::boolean).unwrap_or(unset);
                node.boolean() == Some(false) || old
            }
            Stricter::True { unset } => {
                let old = under.and_then(Node::boolean).unwrap_or(unset);
                node.boolean() == Some(true) || !old
            }
            Stricter::Fewer { unset } => match under {
                Some(under) => {
                    let mut items = node.items(&[]).iter();
                    items.all(|item| contains(under, item, names_files))
                }
                None => unset == Unset::Everything || node.items(&[]).is_empty(),
            },
            Stricter::More => under.is_none_or(|under| {
                let mut items = under.items(&[]).iter();
                items.all(|item| contains(node, item, names_files))
            }),
            Stricter::Inside => node
                .items(&[])
                .iter()
                .all(|item| self.is_inside(item, under)),
        }
    }

    /// Whether a directory is inside one of the others.
    fn is_inside(&self, item: &Node, under: Option<&Node>) -> bool {
        let resolved = |node: &Node| {
            let path = node.origin.directory().join(node.text()?);
            Some((self.rules.resolve)(&path))
        };
        let roots = under.map(|under| under.items(&[])).unwrap_or_default();
        let path = resolved(item);
        path.is_some_and(|path| {
            // Where `..` leads is not known as long as the directory before it does not exist.
            let is_resolved = path.components().all(|step| step != Component::ParentDir);
            let mut roots = roots.iter().filter_map(resolved);
            is_resolved && roots.any(|root| path.starts_with(root))
        })
    }

    /// Reduces a value to its part that is stricter, if there is one.
    fn keep_strict_part(
        &mut self,
        node: &mut Node,
        (stricter, names_files): (Stricter, bool),
        under: Option<&Node>,
        path: &[&str],
    ) -> Kept {
        if let (["risk", tool], false) = (path, self.rules.is_trusted)
            && let (Ok(tool), Some(Ok(risk))) = (tool.parse(), node.text().map(str::parse))
        {
            self.found.least_risks.insert(tool, risk);
        }
        let (Some(under), Content::List(items)) = (under, &node.content) else {
            return false;
        };
        let strict: Vec<Node> = match stricter {
            Stricter::Fewer { .. } => {
                let kept = items
                    .iter()
                    .filter(|item| contains(under, item, names_files));
                kept.cloned().collect()
            }
            Stricter::Inside => {
                let kept = items
                    .iter()
                    .filter(|item| self.is_inside(item, Some(under)));
                kept.cloned().collect()
            }
            Stricter::More => {
                let missing = under.items(&[]).iter();
                let missing = missing.filter(|item| !contains(node, item, names_files));
                items.iter().chain(missing).cloned().collect()
            }
            _ => return false,
        };
        node.content = Content::List(strict);
        true
    }

    fn report(&mut self, node: &Node, power: KeyPower, path: &[&str]) {
        self.found.untrusted.push(UntrustedSetting {
            key: dotted(path),
            power,
            value: shown_value(node, path),
            line: node.origin.line(),
        });
    }
}

/// Whether values are paths, which depend on the file they are in.
const fn is_path(shape: Shape) -> bool {
    matches!(shape, Shape::Text(Form::Path) | Shape::Texts(Form::Path))
}

/// Whether two values are the same. If they name files, what is relative depends on the directory of its file.
fn is_same(one: &Node, other: &Node, names_files: bool) -> bool {
    let is_absolute = |node: &Node| {
        node.text()
            .is_some_and(|text| Path::new(text).is_absolute())
    };
    let names_same_files = || {
        one.origin.directory() == other.origin.directory()
            || is_absolute(one)
            || (!one.items(&[]).is_empty() && one.items(&[]).iter().all(is_absolute))
    };
    one.value() == other.value() && (!names_files || names_same_files())
}

fn contains(list: &Node, item: &Node, names_files: bool) -> bool {
    let mut others = list.items(&[]).iter();
    others.any(|other| is_same(item, other, names_files))
}
