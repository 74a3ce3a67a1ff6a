//! Builds a configuration from a checked tree. It cannot fail, because every value was checked before.

mod servers;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use windlass_spec::registry::{
    CategoryName, Environment, Override, Permission, RateLimits, ToolCategory, ToolConfiguration,
    Window,
};
use windlass_spec::server::ServerName;
use windlass_spec::{Confidence, IsolationLevel, TimeoutSeconds};

use crate::configuration::{Category, Configuration, Inner};
use crate::form::period;
use crate::prices::{PriceTable, dollars};
use crate::restrict::Restricted;
use crate::rules::known;
use crate::settings::{
    AgentSettings, ApprovalSettings, BreakerSettings, BudgetLimits, BudgetSettings, Ceilings,
    FileToolSettings, GapSettings, GateSettings, IntentDefinition, IntentSettings,
    LearningSettings, Library, OidcSettings, OidcTenant, PrincipalSettings, RetentionSettings,
    SearchSettings, SelectionSettings, WebToolSettings, WithoutConfidence,
};
use crate::show;
use crate::tree::{Node, object};

pub(crate) fn build(tree: Node, restricted: &Restricted) -> Configuration {
    let categories: BTreeMap<CategoryName, Category> = tree
        .entries(&["categories"])
        .filter_map(|(name, node)| Some((name.parse().ok()?, category(name, node)?)))
        .collect();
    let category_of = categories
        .iter()
        .flat_map(|(name, known)| {
            let tools = known.category.tools().keys();
            tools.map(|tool| (tool.clone(), name.clone()))
        })
        .collect();
    let inner = Inner {
        environment: parsed(&tree, &["environment"]).unwrap_or(Environment::DEVELOPMENT),
        environments: known::environments(&tree),
        model: text(&tree, &["model"]),
        base_url: text(&tree, &["base_url"]),
        libraries: tree
            .items(&["libraries"])
            .iter()
            .filter_map(library)
            .collect(),
        policies: tree.at(&["policies"]).and_then(path),
        restricting_policies: restricted.policies.as_ref().and_then(path),
        least_risks: restricted.least_risks.clone(),
        categorized_by_project: restricted.categorized_tools.clone(),
        trusted_directories: tree
            .items(&["trust", "directories"])
            .iter()
            .filter_map(path)
            .collect(),
        data_directory: tree.at(&["data_directory"]).and_then(path),
        isolation: text(&tree, &["isolation"])
            .and_then(|word| IsolationLevel::of_word(&word))
            .unwrap_or_default(),
        vocabulary: known::known_permissions(&tree),
        binds_compatible: text(&tree, &["binding", "mode"]).as_deref() == Some("compatible"),
        gate: gate(&tree),
        approvals: ApprovalSettings {
            expiry: seconds(&tree, &["approvals", "expiry_seconds"]),
        },
        risk: tree
            .entries(&["risk"])
            .filter_map(|(tool, level)| Some((tool.parse().ok()?, level.text()?.parse().ok()?)))
            .collect(),
        principals: tree
            .entries(&["principals"])
            .map(|(name, node)| (name.to_owned(), principal(node)))
            .collect(),
        approvers: tree
            .entries(&["approvers"])
            .map(|(name, node)| (name.to_owned(), texts(node.items(&["members"]))))
            .collect(),
        agents: tree
            .entries(&["agents"])
            .filter_map(|(name, node)| Some((name.parse().ok()?, agent(node))))
            .collect(),
        servers: servers::servers(&tree),
        webhooks: webhooks::webhooks(&tree),
        known_categories: known::categories(&tree),
        categories,
        category_of,
        ceilings: Ceilings {
            rate_limits: rate_limits(tree.at(&["ceilings", "rate_limits"])),
            timeout: timeout(tree.at(&["ceilings", "timeout_seconds"])),
        },
        breaker: BreakerSettings {
            failures: integer(&tree, &["breaker", "failures"]),
            cooldown: seconds(&tree, &["breaker", "cooldown_seconds"]),
        },
        budgets: budgets(&tree),
        prices: PriceTable::of(&tree),
        retention: RetentionSettings {
            payloads: retained(&tree, "payloads"),
            audit: retained(&tree, "audit"),
            trace_files: boolean(&tree, &["retention", "trace_files"]).unwrap_or(false),
        },
        selection: SelectionSettings {
            token_budget: integer(&tree, &["selection", "token_budget"]),
            always: parsed_all(tree.items(&["selection", "always"])),
        },
        intents: intents(&tree),
        gaps: GapSettings {
            check: boolean(&tree, &["gaps", "check"]).unwrap_or(true),
            threshold: confidence(tree.at(&["gaps", "threshold"])).unwrap_or(Confidence::FULL),
            ask_model: boolean(&tree, &["gaps", "ask_model"]).unwrap_or(false),
        },
        learning: LearningSettings {
            enabled: boolean(&tree, &["learning", "enabled"]).unwrap_or(true),
            frozen: boolean(&tree, &["learning", "frozen"]).unwrap_or(false),
            recall: integer(&tree, &["learning", "recall"]),
            similarity_floor: confidence(tree.at(&["learning", "similarity_floor"]))
                .unwrap_or(Confidence::FULL),
            min_confidence: confidence(tree.at(&["learning", "min_confidence"]))
                .unwrap_or(Confidence::FULL),
            checker: texts(tree.items(&["learning", "checker"])),
            checker_directory: tree
                .at(&["learning", "checker"])
                .map(|node| node.origin.directory().to_owned())
                .unwrap_or_default(),
            checker_environment: texts(tree.items(&["learning", "checker_environment"])),
            wording: boolean(&tree, &["learning", "wording"]).unwrap_or(false),
            max_strategies: integer(&tree, &["learning", "max_strategies"]),
            max_tokens: integer(&tree, &["learning", "max_tokens"]),
            unused_after: integer(&tree, &["learning", "unused_after"]),
        },
        files: FileToolSettings {
            roots: tree
                .items(&["files", "roots"])
                .iter()
                .filter_map(path)
                .collect(),
            max_bytes: integer(&tree, &["files", "max_bytes"]),
        },
        http: WebToolSettings {
            hosts: texts(tree.items(&["http", "hosts"])),
            max_bytes: integer(&tree, &["http", "max_bytes"]),
            timeout: seconds(&tree, &["http", "timeout_seconds"]),
            allow_private: boolean(&tree, &["http", "allow_private"]).unwrap_or(false),
        },
        search: SearchSettings {
            endpoint: text(&tree, &["search", "endpoint"]),
            max_results: integer(&tree, &["search", "max_results"]),
        },
        automation: text(&tree, &["automation", "endpoint"]),
        oidc: oidc(&tree),
        digest: show::digest(&tree),
        tree,
    };
    Configuration {
        inner: Arc::new(inner),
    }
}

fn oidc(tree: &Node) -> Option<OidcSettings> {
    let of = |key| text(tree, &["oidc", key]);
    let roles = tree.entries(&["oidc", "roles"]);
    Some(OidcSettings {
        issuer: of("issuer")?,
        audience: of("audience")?,
        principal_claim: of("principal_claim").unwrap_or_else(|| "sub".to_owned()),
        roles_claim: of("roles_claim").unwrap_or_else(|| "roles".to_owned()),
        roles: roles
            .map(|(role, scopes)| (role.to_owned(), texts(scopes.items(&[]))))
            .collect(),
        tenant: match (of("tenant"), of("tenant_claim")) {
            (_, Some(claim)) => OidcTenant::Claim(claim),
            (Some(tenant), None) => OidcTenant::Fixed(tenant),
            (None, None) => OidcTenant::OfServer,
        },
    })
}

fn gate(tree: &Node) -> GateSettings {
    let threshold = tree.at(&["gate", "confidence_threshold"]);
    let asks = text(tree, &["gate", "without_confidence"]).as_deref() == Some("ask");
    GateSettings {
        undo_window: seconds(tree, &["gate", "undo_window_seconds"]),
        // Without a threshold, use the strictest one.
        confidence_threshold: confidence(threshold).unwrap_or(Confidence::FULL),
        without_confidence: if asks {
            WithoutConfidence::Ask
        } else {
            WithoutConfidence::Hold
        },
    }
}

fn principal(node: &Node) -> PrincipalSettings {
    PrincipalSettings {
        permissions: permissions(node),
        rate_limits: rate_limits(node.get("rate_limits")),
        budgets: budgets(node),
    }
}

fn agent(node: &Node) -> AgentSettings {
    AgentSettings {
        permissions: node.get("permissions").map(|_| permissions(node)),
        servers: node
            .items(&["servers"])
            .iter()
            .filter_map(|item| ServerName::new(item.text()?).ok())
            .collect(),
        budgets: budgets(node),
    }
}

/// The budgets in a table.
fn budgets(node: &Node) -> BudgetSettings {
    let limits = |of: &str| BudgetLimits {
        tokens: node
            .at(&["budgets", of, "tokens"])
            .and_then(Node::integer)
            .and_then(|tokens| u64::try_from(tokens).ok()),
        money: node.at(&["budgets", of, "dollars"]).and_then(dollars),
    };
    BudgetSettings {
        run: limits("run"),
        day: limits("day"),
    }
}

/// How long something is kept. What cannot be read is never removed.
fn retained(tree: &Node, key: &str) -> Option<Duration> {
    let text = tree.at(&["retention", key])?.text()?;
    period(text).ok().flatten()
}

fn category(name: &str, node: &Node) -> Option<Category> {
    let mut category = ToolCategory::new(name.parse().ok()?);
    category.enabled = boolean(node, &["enabled"]).unwrap_or(true);
    category.permissions = permissions(node);
    category.global_config = node
        .get("global_config")
        .and_then(Node::table)
        .map(object)
        .unwrap_or_default();
    for (tool, node) in node.entries(&["tools"]) {
        category.configure(tool_configuration(tool, node)?);
    }
    let overrides = node.entries(&["environment_overrides"]);
    Some(Category {
        category,
        rate_limits: rate_limits(node.get("rate_limits")),
        demands: node
            .entries(&["tools"])
            .filter_map(|(tool, node)| Some((tool.parse().ok()?, permissions(node))))
            .collect(),
        overrides: overrides
            .filter_map(|(name, node)| Some((name.parse().ok()?, boolean(node, &["enabled"])?)))
            .collect(),
    })
}

fn tool_configuration(name: &str, node: &Node) -> Option<ToolConfiguration> {
    let everywhere = tool_override(node);
    let overrides = node.entries(&["environment_overrides"]);
    Some(ToolConfiguration {
        enabled: everywhere.enabled.unwrap_or(true),
        parameters: everywhere.parameters.unwrap_or_default(),
        rate_limits: everywhere.rate_limits.unwrap_or_default(),
        timeout_seconds: everywhere.timeout_seconds,
        environment_overrides: overrides
            .filter_map(|(name, node)| Some((name.parse().ok()?, tool_override(node))))
            .collect(),
        ..ToolConfiguration::new(name.parse().ok()?)
    })
}

/// The settings of a tool, for all environments or for one.
fn tool_override(node: &Node) -> Override {
    Override {
        enabled: boolean(node, &["enabled"]),
        parameters: node.get("parameters").and_then(Node::table).map(object),
        rate_limits: node.get("rate_limits").map(|node| rate_limits(Some(node))),
        timeout_seconds: timeout(node.get("timeout_seconds")),
    }
}

fn intents(tree: &Node) -> IntentSettings {
    let list = |node: &Node, key| node.get(key).map(|_| node.items(&[key]).to_vec());
    let intents = tree
        .entries(&["intents"])
        .filter(|(_, node)| node.table().is_some());
    IntentSettings {
        threshold: confidence(tree.at(&["intents", "threshold"])).unwrap_or(Confidence::HALF),
        intents: intents
            .filter_map(|(name, node)| {
                let intent = IntentDefinition {
                    examples: list(node, "examples").map(|items| texts(&items)),
                    tools: list(node, "tools").map(|items| parsed_all(&items)),
                    context: list(node, "context").map(|items| texts(&items)),
                    fallbacks: list(node, "fallbacks").map(|items| texts(&items)),
                };
                Some((name.parse().ok()?, intent))
            })
            .collect(),
    }
}

/// The rate limits under a node; none without a node.
pub(crate) fn rate_limits(node: Option<&Node>) -> RateLimits {
    let mut limits = RateLimits::none();
    for (window, limit) in node.into_iter().flat_map(|node| node.entries(&[])) {
        let limit = limit.integer().and_then(|limit| u32::try_from(limit).ok());
        if let (Ok(window), Some(limit)) =
            (Window::from_str(window), limit.and_then(NonZeroU32::new))
        {
            limits.set(window, limit);
        }
    }
    limits
}

pub(crate) fn timeout(node: Option<&Node>) -> Option<TimeoutSeconds> {
    TimeoutSeconds::try_from(node?.integer()?).ok()
}

fn library(node: &Node) -> Option<Library> {
    match node.text()? {
        Library::BUILT_IN => Some(Library::BuiltIn),
        _ => path(node).map(Library::File),
    }
}

/// A path, relative to the directory of its file.
fn path(node: &Node) -> Option<PathBuf> {
    Some(node.origin.directory().join(node.text()?))
}

fn permissions(node: &Node) -> BTreeSet<Permission> {
    parsed_all(node.items(&["permissions"]))
        .into_iter()
        .collect()
}

fn confidence(node: Option<&Node>) -> Option<Confidence> {
    Confidence::try_from(node?.number()?).ok()
}

fn boolean(tree: &Node, path: &[&str]) -> Option<bool> {
    tree.at(path)?.boolean()
}

fn text(tree: &Node, path: &[&str]) -> Option<String> {
    tree.at(path)?.text().map(str::to_owned)
}

fn texts(items: &[Node]) -> Vec<String> {
    items
        .iter()
        .filter_map(Node::text)
        .map(str::to_owned)
        .collect()
}

fn parsed<T: FromStr>(tree: &Node, path: &[&str]) -> Option<T> {
    tree.at(path)?.text()?.parse().ok()
}

fn parsed_all<T: FromStr>(items: &[Node]) -> Vec<T> {
    let texts = items.iter().filter_map(Node::text);
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// An integer that has a built-in value.
fn integer<T: TryFrom<i64> + Default>(tree: &Node, path: &[&str]) -> T {
    let number = tree.at(path).and_then(Node::integer);
    number
        .and_then(|number| T::try_from(number).ok())
        .unwrap_or_default()
}

fn seconds(tree: &Node, path: &[&str]) -> Duration {
    Duration::from_secs(integer(tree, path))
}
