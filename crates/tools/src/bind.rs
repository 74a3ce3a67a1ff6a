//! Binding: finds an implementation for each tool that an agent declares. It decides whether an
//! implementation matches a specification. It runs nothing and changes neither.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_spec::{
    Agent, ToolName, ToolSpecification, Type, accepts_parameters, nearest_all,
    parameters_from_schema,
};

use crate::difference::differences;
use crate::failure::{BindingFailure, BindingReason, SchemaPart};
use crate::library::ToolLibrary;
use crate::program_files::BoundPrograms;
use crate::split::Split;
use crate::tool::Tool;

/// How closely an implementation must follow its specification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindingMode {
    /// The schemas are equal, also that of the result if the implementation has one. Order within a schema does
    /// not matter. Differences between descriptions are notes.
    #[default]
    Exact,
    /// The implementation accepts all arguments that the specification allows and, if it has a return
    /// schema, returns only values that the specification allows. Descriptions may differ.
    Compatible,
}

/// A specification together with its implementation.
#[derive(Debug, Clone)]
pub struct BoundTool {
    specification: Arc<ToolSpecification>,
    tool: Arc<Tool>,
    notes: Vec<BindingReason>,
    programs: Arc<BoundPrograms>,
}

impl BoundTool {
    /// The name of both.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        self.tool.name()
    }

    /// The specification that the agent declares.
    #[must_use]
    pub fn specification(&self) -> &Arc<ToolSpecification> {
        &self.specification
    }

    /// The implementation.
    #[must_use]
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Differences between the two that do not matter for calls: those of descriptions.
    #[must_use]
    pub fn notes(&self) -> &[BindingReason] {
        &self.notes
    }

    /// Its programs as they were when it was bound.
    pub(crate) fn programs(&self) -> Arc<BoundPrograms> {
        Arc::clone(&self.programs)
    }

    /// The implementation, for tasks that may outlive this value.
    pub(crate) fn shared_tool(&self) -> Arc<Tool> {
        Arc::clone(&self.tool)
    }
}

/// All tools of an agent, bound to one library, in the order the agent declares them.
#[derive(Debug, Clone)]
pub struct BoundTools {
    library: String,
    tools: Vec<BoundTool>,
}

impl BoundTools {
    /// The name of the library of the implementations.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.library
    }

    /// The tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BoundTool> {
        self.tools.iter().find(|tool| tool.name().as_str() == name)
    }
}

/// The tools in order.
impl Deref for BoundTools {
    type Target = [BoundTool];

    fn deref(&self) -> &[BoundTool] {
        &self.tools
    }
}

impl<'a> IntoIterator for &'a BoundTools {
    type Item = &'a BoundTool;
    type IntoIter = std::slice::Iter<'a, BoundTool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Finds the implementation of every tool of `agent` in `library`.
///
/// # Errors
/// A failure for each tool that cannot be bound, in the order the agent declares them.
pub fn bind(
    agent: &Agent,
    library: &ToolLibrary,
    mode: BindingMode,
) -> Result<BoundTools, Vec<BindingFailure>> {
    let mut tools = Vec::with_capacity(agent.tools().len());
    let mut failures = Vec::new();
    for specification in agent.tools() {
        match library.bind_tool(specification, mode) {
            Ok(tool) => tools.push(tool),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() {
        Ok(BoundTools {
            library: library.name().to_owned(),
            tools,
        })
    } else {
        Err(failures)
    }
}

impl ToolLibrary {
    /// Finds the implementation of one tool.
    ///
    /// # Errors
    /// Every reason why there is none.
    pub fn bind_tool(
        &self,
        specification: &Arc<ToolSpecification>,
        mode: BindingMode,
    ) -> Result<BoundTool, BindingFailure> {
        let failure = |reasons| BindingFailure {
            tool: specification.name().clone(),
            reasons,
        };
        let Some(tool) = self.lookup(specification.name().as_str()) else {
            return Err(failure(vec![self.missing(specification.name())]));
        };
        let check = |tool: &Tool| match mode {
            BindingMode::Exact => exact_mismatches(specification, tool),
            BindingMode::Compatible => incompatibilities(specification, tool),
        };
        let mut reasons = check(tool);
        for variant in tool.splits().into_iter().flat_map(Split::variants) {
            reasons.extend(check(&variant.tool).into_iter().map(|reason| {
                BindingReason::InVariant {
                    variant: variant.name.to_string(),
                    reason: Box::new(reason),
                }
            }));
        }
        match reasons.iter().all(BindingReason::is_note) {
            true => Ok(BoundTool {
                specification: Arc::clone(specification),
                programs: Arc::new(BoundPrograms::of(tool)),
                tool: Arc::new(tool.clone()),
                notes: reasons,
            }),
            false => Err(failure(reasons)),
        }
    }

    fn missing(&self, name: &ToolName) -> BindingReason {
        const SUGGESTIONS: usize = 3;
        let names = self.iter().map(|tool| tool.name().as_str());
        let nearest = nearest_all(name.as_str(), names, SUGGESTIONS);
        BindingReason::Missing {
            library: self.name().to_owned(),
            nearest: nearest.into_iter().map(str::to_owned).collect(),
        }
    }
}

fn exact_mismatches(specification: &ToolSpecification, tool: &Tool) -> Vec<BindingReason> {
    let mut reasons = Vec::new();
    if specification.description() != tool.description() {
        reasons.push(BindingReason::DescriptionDiffers {
            specification: specification.description().to_owned(),
            implementation: tool.description().to_owned(),
        });
    }
    let arguments = differences(specification.schema(), tool.schema());
    if !arguments.is_empty() {
        reasons.push(BindingReason::SchemaDiffers {
            differences: arguments,
        });
    }
    let result = tool
        .returns_schema()
        .map(|returns| differences(&specification.returns_schema(), returns))
        .unwrap_or_default();
    if !result.is_empty() {
        reasons.push(BindingReason::ReturnDiffers {
            differences: result,
        });
    }
    reasons
}

fn incompatibilities(specification: &ToolSpecification, tool: &Tool) -> Vec<BindingReason> {
    let arguments = incompatible_arguments(specification, tool);
    arguments
        .into_iter()
        .chain(incompatible_result(specification, tool))
        .collect()
}

// Equal schemas are always compatible, however large they are. Only different schemas are converted to
// types, which have limits. So a tool that binds exactly also binds compatibly.

fn incompatible_arguments(specification: &ToolSpecification, tool: &Tool) -> Option<BindingReason> {
    if differences(specification.schema(), tool.schema()).is_empty() {
        return None;
    }
    match parameters_from_schema(tool.schema()) {
        Ok(accepted) => accepts_parameters(&accepted, specification.signature().parameters())
            .err()
            .map(|mismatches| BindingReason::Incompatible { mismatches }),
        Err(inexpressible) => Some(BindingReason::Undecidable {
            part: SchemaPart::Parameters,
            inexpressible,
        }),
    }
}

fn incompatible_result(specification: &ToolSpecification, tool: &Tool) -> Option<BindingReason> {
    let returns = tool.returns_schema()?;
    if differences(&specification.returns_schema(), returns).is_empty() {
        return None;
    }
    let declared = specification.signature().returns();
    match Type::from_schema(returns) {
        // The messages of the mismatches are about arguments. For a result the direction is
        // reversed, so only the paths are kept.
        Ok(returned) => declared.accepts(&returned).err().map(|mismatches| {
            let mut paths: Vec<String> = mismatches
                .into_iter()
                .map(|mismatch| mismatch.path)
                .collect();
            paths.dedup();
            BindingReason::ReturnIncompatible {
                specification: declared.clone(),
                implementation: returned,
                paths,
            }
        }),
        Err(inexpressible) => Some(BindingReason::Undecidable {
            part: SchemaPart::Returns,
            inexpressible,
        }),
    }
}
