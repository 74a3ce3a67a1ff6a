//! The tools as Cedar sees them. The specifications give the Cedar schema that rules are checked
//! against, the groups of an action, and the names that a rule may use.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_spec::{Misfit, RiskLevel, Signature, ToolSpecification};

use crate::analysis::{APPROVED, INPUT};
use crate::error::{Internal, PolicyError, Problem};
use crate::shape::{Attribute, Shape, attributes};

/// The group of all tools.
pub(crate) const ALL_TOOLS: &str = "tools";

/// The types of entities.
#[derive(Debug, Clone)]
pub(crate) struct EntityTypes {
    user: EntityTypeName,
    tenant: EntityTypeName,
    agent: EntityTypeName,
    action: EntityTypeName,
}

/// The name of the group of the tools of a category.
pub(crate) fn category_group(category: &str) -> String {
    format!("category:{category}")
}

impl EntityTypes {
    pub(crate) fn new() -> Result<Self, Internal> {
        let name = |name: &str| name.parse::<EntityTypeName>().map_err(Internal::new);
        Ok(Self {
            user: name("User")?,
            tenant: name("Tenant")?,
            agent: name("Agent")?,
            action: name("Action")?,
        })
    }

    pub(crate) fn user(&self, name: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.user.clone(), EntityId::new(name))
    }

    pub(crate) fn tenant(&self, name: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.tenant.clone(), EntityId::new(name))
    }

    pub(crate) fn agent(&self, name: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.agent.clone(), EntityId::new(name))
    }

    pub(crate) fn action(&self, name: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.action.clone(), EntityId::new(name))
    }

    pub(crate) fn is_action(&self, entity: &EntityUid) -> bool {
        *entity.type_name() == self.action
    }

    /// The entity of an action, in its groups.
    pub(crate) fn action_entity(&self, name: &str, groups: &[String]) -> Entity {
        let groups = groups.iter().map(|group| self.action(group)).collect();
        Entity::new_no_attrs(self.action(name), groups)
    }
}

/// One tool.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The groups it belongs to.
    pub(crate) groups: Vec<String>,
    /// Every declared argument, whether or not it can be represented.
    pub(crate) declared: BTreeSet<String>,
    /// The arguments that can be represented.
    pub(crate) arguments: Vec<Attribute>,
    /// Its declared attributes, as the attribute `tool` of the context.
    pub(crate) facts: Vec<(String, RestrictedExpression)>,
    /// The shape of the context when this tool is called.
    pub(crate) context: Shape,
    /// Its declared risk.
    pub(crate) risk: Option<RiskLevel>,
}

/// All tools.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    by_name: BTreeMap<String, Tool>,
    signatures: BTreeMap<String, Signature>,
    groups: BTreeSet<String>,
}

impl Tools {
    pub(crate) fn new<'a>(
        specifications: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<Self, Vec<PolicyError>> {
        let mut known: BTreeMap<&str, &ToolSpecification> = BTreeMap::new();
        let mut errors = Vec::new();
        for specification in specifications {
            let name = specification.name().as_str();
            match known.get(name) {
                Some(other) if !same_to_policy(other, specification) => {
                    let problem = Problem::ConflictingTools(name.to_owned());
                    errors.push(PolicyError::new(None, None, problem).hint(
                        "tools with the same name must have the same arguments and attributes",
                    ));
                }
                Some(_) => {}
                None => {
                    known.insert(name, specification);
                }
            }
        }
        let categories: BTreeSet<String> = known
            .values()
            .filter_map(|tool| tool.attributes().category.as_ref())
            .map(|category| category.as_str().to_owned())
            .collect();
        let mut groups: BTreeSet<String> =
            categories.iter().map(|name| category_group(name)).collect();
        groups.insert(ALL_TOOLS.to_owned());
        for name in known.keys().filter(|name| groups.contains(**name)) {
            let problem = Problem::ReservedToolName((*name).to_owned());
            errors.push(PolicyError::new(None, None, problem).hint("give the tool another name"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let categories: Vec<String> = categories.into_iter().collect();
        let signatures = known.iter().map(|(name, specification)| {
            let signature = specification.signature().clone();
            ((*name).to_owned(), signature)
        });
        let tools = known.iter().map(|(name, specification)| {
            let tool = Tool::new(specification, &categories);
            ((*name).to_owned(), tool)
        });
        Ok(Self {
            by_name: tools.collect(),
            signatures: signatures.collect(),
            groups,
        })
    }

    /// The first argument error of a call.
    pub(crate) fn misfit(&self, tool: &str, input: &Map<String, Value>) -> Option<Misfit> {
        let signature = self.signatures.get(tool)?;
        let misfits = signature.misfits(&Value::Object(input.clone()));
        misfits.into_iter().next()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.by_name.values()
    }

    /// The names an action may have.
    pub(crate) fn action_names(&self) -> impl Iterator<Item = &str> {
        let names = self.by_name.keys().chain(&self.groups);
        names.map(String::as_str)
    }

    /// The Cedar schema: users of tenants, agents, and one action for each tool.
    pub(crate) fn schema(&self) -> Result<Schema, Internal> {
        let text = json!({"type": "String", "required": true});
        let mut actions = Map::new();
        for group in &self.groups {
            let above: &[Value] = if group == ALL_TOOLS {
                &[]
            } else {
                &[json!({"id": ALL_TOOLS})]
            };
            actions.insert(group.clone(), json!({"memberOf": above}));
        }
        for tool in self.iter() {
            let groups: Vec<Value> = tool.groups.iter().map(|id| json!({"id": id})).collect();
            let action = json!({
                "memberOf": groups,
                "appliesTo": {
                    "principalTypes": ["User"],
                    "resourceTypes": ["Agent"],
                    "context": tool.context.schema(),
                },
            });
            actions.insert(tool.name.clone(), action);
        }
        let schema = json!({"": {
            "entityTypes": {
                "Tenant": {},
                "User": {
                    "memberOfTypes": ["Tenant"],
                    "shape": {"type": "Record", "attributes": {"name": text, "tenant": text}},
                },
                "Agent": {"shape": {"type": "Record", "attributes": {"name": text}}},
            },
            "actions": actions,
        }});
        Schema::from_json_value(schema).map_err(Internal::new)
    }
}

/// The attributes of principals and resources.
pub(crate) fn entity_attributes(variable: &str) -> &'static [&'static str] {
    match variable {
        "principal" => &["name", "tenant"],
        "resource" => &["name"],
        _ => &[],
    }
}

fn same_to_policy(one: &ToolSpecification, other: &ToolSpecification) -> bool {
    one.signature().parameters() == other.signature().parameters()
        && one.attributes() == other.attributes()
}

/// The declared attributes of a tool that rules can use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Declared {
    pub(crate) category: Option<String>,
    pub(crate) open_world: Option<bool>,
    pub(crate) sensitive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
}

impl Declared {
    fn groups(&self) -> Vec<String> {
        let category = self.category.as_deref().map(category_group);
        let mut groups = vec![ALL_TOOLS.to_owned()];
        groups.extend(category);
        groups
    }

    fn facts(&self) -> Vec<(String, RestrictedExpression)> {
        let flags = [
            ("open_world", self.open_world),
            ("sensitive", self.sensitive),
            ("idempotent", self.idempotent),
        ];
        let flags = flags.into_iter().filter_map(|(name, truth)| {
            let truth = RestrictedExpression::new_bool(truth?);
            Some((name.to_owned(), truth))
        });
        let category = self.category.clone().map(|category| {
            let category = RestrictedExpression::new_string(category);
            ("category".to_owned(), category)
        });
        flags.chain(category).collect()
    }
}

impl Tool {
    fn new(specification: &ToolSpecification, categories: &[String]) -> Self {
        let attributes_declared = specification.attributes();
        let category = attributes_declared.category.as_ref();
        let declared = Declared {
            category: category.map(|category| category.as_str().to_owned()),
            open_world: attributes_declared.open_world,
            sensitive: attributes_declared.sensitive,
            idempotent: attributes_declared.idempotent,
        };
        let parameters = specification.signature().parameters();
        let arguments = attributes(parameters);
        Self {
            name: specification.name().as_str().to_owned(),
            groups: declared.groups(),
            declared: parameters.iter().map(|field| field.name.clone()).collect(),
            context: context_shape(&arguments, categories),
            arguments,
            facts: declared.facts(),
            risk: attributes_declared.risk,
        }
    }

    /// A tool that is known only by its arguments and attributes.
    pub(crate) fn unnamed(arguments: Vec<Attribute>, declared: &Declared) -> Self {
        Self {
            name: "some tool".to_owned(),
            groups: declared.groups(),
            declared: arguments
                .iter()
                .map(|argument| argument.name.clone())
                .collect(),
            context: context_shape(&arguments, &[]),
            arguments,
            facts: declared.facts(),
            risk: None,
        }
    }
}

/// The shape of the context of a call.
fn context_shape(arguments: &[Attribute], categories: &[String]) -> Shape {
    let risks = RiskLevel::ALL.map(|risk| risk.as_str().to_owned());
    Shape::Record(vec![
        Attribute::required(INPUT, Shape::Record(arguments.to_vec())),
        Attribute::required("risk", Shape::Words(risks.to_vec())),
        Attribute::optional("confidence", Shape::Decimal),
        Attribute::required("environment", Shape::Text),
        Attribute::required("tainted", Shape::Bool),
        Attribute::required(APPROVED, Shape::Bool),
        Attribute::required(
            "session",
            Shape::Record(vec![
                Attribute::required("calls", Shape::Long),
                Attribute::required("tool_calls", Shape::Long),
                Attribute::required("irreversible_calls", Shape::Long),
                Attribute::required("denied_calls", Shape::Long),
                Attribute::required("sensitive_read", Shape::Bool),
            ]),
        ),
        Attribute::required(
            "tool",
            Shape::Record(vec![
                Attribute::optional("category", Shape::Words(categories.to_vec())),
                Attribute::optional("open_world", Shape::Bool),
                Attribute::optional("sensitive", Shape::Bool),
                Attribute::optional("idempotent", Shape::Bool),
            ]),
        ),
    ])
}
