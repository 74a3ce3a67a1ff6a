//! The rules between values, checked after all layers are merged: names must exist, values must not
//! contradict each other, and no value may be above a ceiling.

mod ceilings;
pub(crate) mod known;
mod money;
mod oidc;
mod servers;
mod switches;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_spec::registry::{Categories, CategoryName, Environments, Vocabulary};
use windlass_spec::{Field, Misfit, nearest};

use crate::mistake::{ConfigMistake, quoted};
use crate::settings::IntentSettings;
use crate::show::is_secret;
use crate::tree::{Node, dotted, object};

/// Checks a whole configuration.
pub(crate) fn check(tree: &Node, mistakes: &mut Vec<ConfigMistake>) {
    let mut rules = Rules {
        tree,
        // If a list of declared names is invalid, unknown names cannot be detected.
        environments: is_sound(tree, "environments").then(|| known::environments(tree)),
        vocabulary: is_sound(tree, "permissions").then(|| known::known_permissions(tree)),
        categories: known::categories(tree),
        mistakes,
    };
    rules.environment();
    rules.permissions();
    rules.categories();
    rules.tools_in_two_categories();
    rules.intents();
    oidc::check(tree, rules.mistakes);
    servers::check(tree, rules.mistakes);
    webhooks::check(tree, rules.mistakes);
    switches::check(tree, rules.mistakes);
    ceilings::check(tree, rules.mistakes);
    money::check(tree, rules.mistakes);
}

fn is_sound(tree: &Node, key: &str) -> bool {
    !tree.get(key).is_some_and(Node::has_invalid)
}

struct Rules<'a> {
    tree: &'a Node,
    environments: Option<Environments>,
    vocabulary: Option<Vocabulary>,
    categories: Categories,
    mistakes: &'a mut Vec<ConfigMistake>,
}

impl Rules<'_> {
    fn error(
        &mut self,
        node: &Node,
        path: &[&str],
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
        self.mistakes.push(mistake.help(help));
    }

    fn environment(&mut self) {
        let tree = self.tree;
        if let Some(node) = tree.get("environment")
            && let Some(name) = node.text()
        {
            self.require_environment(name, node, &["environment"]);
        }
        for (category, node) in tree.entries(&["categories"]) {
            let path = ["categories", category, "environment_overrides"];
            self.overrides(node, &path);
            for (tool, node) in node.entries(&["tools"]) {
                let path = [
                    "categories",
                    category,
                    "tools",
                    tool,
                    "environment_overrides",
                ];
                self.overrides(node, &path);
            }
        }
    }

    fn overrides(&mut self, node: &Node, path: &[&str]) {
        for (environment, node) in node.entries(&["environment_overrides"]) {
            let path: Vec<&str> = path.iter().copied().chain([environment]).collect();
            self.require_environment(environment, node, &path);
        }
    }

    fn require_environment(&mut self, name: &str, node: &Node, path: &[&str]) {
        let Some(Err(unknown)) = self
            .environments
            .as_ref()
            .map(|known| known.require(name).cloned())
        else {
            return;
        };
        let known = quoted(unknown.known.iter().map(String::as_str));
        let help = match &unknown.nearest {
            Some(meant) => format!("did you mean `{meant}`? Known environments: {known}"),
            None => format!("known environments: {known}. To add one: environments = [\"{name}\"]"),
        };
        self.error(node, path, unknown.to_string(), Some(help));
    }

    fn permissions(&mut self) {
        let tree = self.tree;
        for table in ["principals", "agents", "categories"] {
            for (name, node) in tree.entries(&[table]) {
                self.require_permissions(node, &[table, name, "permissions"]);
                for (tool, node) in node.entries(&["tools"]) {
                    let path = [table, name, "tools", tool, "permissions"];
                    self.require_permissions(node, &path);
                }
            }
        }
    }

    fn require_permissions(&mut self, node: &Node, path: &[&str]) {
        for (index, item) in node.items(&["permissions"]).iter().enumerate() {
            self.require_permission(item, path, index);
        }
    }

    fn require_permission(&mut self, item: &Node, path: &[&str], index: usize) {
        let (Some(name), Some(vocabulary)) = (item.text(), &self.vocabulary) else {
            return;
        };
        let Err(unknown) = vocabulary.require(name) else {
            return;
        };
        let define = format!("define the permission: permissions = [\"{name}\"]");
        let help = match &unknown.nearest {
            Some(meant) => format!("did you mean `{meant}`? If not, {define}"),
            None => define,
        };
        let key = format!("{}[{index}]", dotted(path));
        let mistake = ConfigMistake::error(&item.origin, key, unknown.to_string());
        self.mistakes.push(mistake.help(help));
    }

    fn categories(&mut self) {
        let tree = self.tree;
        for (name, node) in tree.entries(&["categories"]) {
            let path = ["categories", name];
            let Ok(category) = name.parse::<CategoryName>() else {
                continue;
            };
            let schema = node.get("schema");
            if let Some(schema) = schema.filter(|_| CategoryName::PREDEFINED.contains(&category)) {
                let message = format!("`{name}` is predefined, and its schema cannot be changed");
                let help = "remove `schema`, or choose another name for the category";
                self.error(
                    schema,
                    &[path[0], name, "schema"],
                    message,
                    Some(help.to_owned()),
                );
            }
            match self.categories.fields(&category).map(<[Field]>::to_vec) {
                Some(fields) => self.global_config(&fields, node, name),
                // An unreadable schema is reported elsewhere.
                None if schema.is_some() => {}
                None => self.undeclared(&category, node),
            }
        }
    }

    fn undeclared(&mut self, category: &CategoryName, node: &Node) {
        let Err(unknown) = self.categories.require(category.as_str()) else {
            return;
        };
        let define = "define the category with the type of its global_config: schema = \"{region: Maybe Text}\"";
        let help = match &unknown.nearest {
            Some(meant) => format!("did you mean `{meant}`? If not, {define}"),
            None => define.to_owned(),
        };
        let path = ["categories", category.as_str()];
        self.error(node, &path, unknown.to_string(), Some(help));
    }

    fn global_config(&mut self, fields: &[Field], category: &Node, name: &str) {
        let node = category.get("global_config");
        let given = node.and_then(Node::table);
        if node.is_some() && given.is_none() {
            return;
        }
        let value = Value::Object(given.map(object).unwrap_or_default());
        let ty = windlass_spec::Type::Record(fields.to_vec());
        for misfit in ty.misfits(&value) {
            let place = node.unwrap_or(category);
            let path = ["categories", name, "global_config"];
            self.misfit(&misfit, place, &path);
        }
    }

    fn misfit(&mut self, misfit: &Misfit, node: &Node, path: &[&str]) {
        let (key, node) = node_at_pointer(&misfit.pointer, node, path);
        let mistake = ConfigMistake::error(&node.origin, key, misfit_message(misfit));
        self.mistakes.push(mistake);
    }

    fn tools_in_two_categories(&mut self) {
        let mut first: BTreeMap<&str, (&str, &Node)> = BTreeMap::new();
        let tree = self.tree;
        for (category, node) in tree.entries(&["categories"]) {
            for (tool, node) in node.entries(&["tools"]) {
                match first.get(tool) {
                    None => {
                        first.insert(tool, (category, node));
                    }
                    Some(&(other, elsewhere)) => {
                        // The entry that was written later is reported.
                        let at = |node: &Node| (node.origin.text.number, node.origin.position);
                        let swapped = at(node) < at(elsewhere);
                        let (category, node, other, elsewhere) = if swapped {
                            (other, elsewhere, category, node)
                        } else {
                            (category, node, other, elsewhere)
                        };
                        let message = format!(
                            "`{tool}` is already in the category `{other}`, at {}",
                            elsewhere.origin
                        );
                        let help = "a tool can be in only one category; remove one of the two";
                        let path = ["categories", category, "tools", tool];
                        self.error(node, &path, message, Some(help.to_owned()));
                    }
                }
            }
        }
    }

    fn intents(&mut self) {
        let tree = self.tree;
        for (name, node) in tree.entries(&["intents"]) {
            let own = node.table().is_some() && !IntentSettings::PREDEFINED.contains(&name);
            let without = node.items(&["examples"]).is_empty()
                && !node.get("examples").is_some_and(Node::has_invalid);
            if own && without {
                let help = match nearest(name, IntentSettings::PREDEFINED) {
                    Some(meant) => {
                        format!("did you mean `{meant}`? If not, add examples = [\"...\"]")
                    }
                    None => "add examples = [\"...\"], ten or more if possible".to_owned(),
                };
                let message = "an intent that is not predefined needs examples of requests";
                self.error(node, &["intents", name], message, Some(help));
            }
        }
    }
}

/// The message for a misfit, without its position.
pub(crate) fn misfit_message(misfit: &Misfit) -> String {
    match misfit.expected.strip_prefix("no such ") {
        Some(what) => format!("there is no such {what}"),
        None => {
            // The value may be a secret: it is not repeated if its key looks like that of a secret.
            let mut steps = misfit.pointer.split('/');
            let found = match steps.any(is_secret) {
                true => "something else",
                false => misfit.found.as_str(),
            };
            format!("expected {}, found {found}", misfit.expected)
        }
    }
}

/// The key that a JSON pointer names under `node`, and the node there or its nearest existing ancestor.
pub(crate) fn node_at_pointer<'n>(
    pointer: &str,
    node: &'n Node,
    path: &[&str],
) -> (String, &'n Node) {
    let steps: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    let mut place = node;
    for step in &steps {
        match place.get(step) {
            Some(below) => place = below,
            None => break,
        }
    }
    let keys: Vec<&str> = path
        .iter()
        .copied()
        .chain(steps.iter().map(String::as_str))
        .collect();
    (dotted(&keys), place)
}
