//! The tools of well-known programs, so that their calls need no specification.

use serde_json::{Map, Value};
use windlass_spec::{
    Field, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification, Type,
};

/// The type of an argument.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
    Any,
}

/// A tool of a program.
#[derive(Debug, Clone, Copy)]
struct ProgramTool {
    name: &'static str,
    description: &'static str,
    /// Its arguments, the required ones first.
    arguments: &'static [(&'static str, Kind)],
    required: usize,
    risk: RiskLevel,
    open_world: bool,
}

/// The base of most: a tool that changes nothing.
const READS: ProgramTool = ProgramTool {
    name: "",
    description: "",
    arguments: &[],
    required: 0,
    risk: RiskLevel::Reversible,
    open_world: false,
};

/// A tool that changes files. The program keeps earlier versions of them, so that a call need not be held.
const WRITES: ProgramTool = ProgramTool {
    risk: RiskLevel::ReversibleWithDelay,
    ..READS
};

/// Runs a command. What the command does decides about its risk.
const BASH: ProgramTool = ProgramTool {
    name: "Bash",
    description: "Runs a command in a shell",
    arguments: &[
        ("command", Kind::Text),
        ("description", Kind::Text),
        ("timeout", Kind::Number),
        ("run_in_background", Kind::Flag),
    ],
    required: 1,
    ..READS
};

const CLAUDE_CODE: &[ProgramTool] = &[
    BASH,
    ProgramTool {
        name: "BashOutput",
        description: "Shows the output of a command in the background",
        arguments: &[("bash_id", Kind::Text), ("filter", Kind::Text)],
        ..READS
    },
    ProgramTool {
        name: "KillShell",
        description: "Ends a command in the background",
        arguments: &[("shell_id", Kind::Text)],
        ..READS
    },
    ProgramTool {
        name: "Read",
        description: "Reads a file",
        arguments: &[
            ("file_path", Kind::Text),
            ("offset", Kind::Number),
            ("limit", Kind::Number),
        ],
        required: 1,
        ..READS
    },
    ProgramTool {
        name: "Glob",
        description: "Lists files by a pattern",
        arguments: &[("pattern", Kind::Text), ("path", Kind::Text)],
        required: 1,
        ..READS
    },
    ProgramTool {
        name: "Grep",
        description: "Searches in files",
        arguments: &[
            ("pattern", Kind::Text),
            ("path", Kind::Text),
            ("glob", Kind::Text),
        ],
        required: 1,
        ..READS
    },
    ProgramTool {
        name: "LS",
        description: "Lists a directory",
        arguments: &[("path", Kind::Text)],
        ..READS
    },
    ProgramTool {
        name: "Write",
        description: "Writes a file",
        arguments: &[("file_path", Kind::Text), ("content", Kind::Text)],
        required: 2,
        ..WRITES
    },
    ProgramTool {
        name: "Edit",
        description: "Replaces a text in a file",
        arguments: &[
            ("file_path", Kind::Text),
            ("old_string", Kind::Text),
            ("new_string", Kind::Text),
            ("replace_all", Kind::Flag),
        ],
        required: 3,
        ..WRITES
    },
    ProgramTool {
        name: "MultiEdit",
        description: "Replaces several texts in a file",
        arguments: &[("file_path", Kind::Text), ("edits", Kind::Any)],
        required: 2,
        ..WRITES
    },
    ProgramTool {
        name: "NotebookEdit",
        description: "Changes a cell of a notebook",
        arguments: &[
            ("notebook_path", Kind::Text),
            ("new_source", Kind::Text),
            ("cell_id", Kind::Text),
            ("cell_type", Kind::Text),
            ("edit_mode", Kind::Text),
        ],
        required: 1,
        ..WRITES
    },
    ProgramTool {
        name: "WebFetch",
        description: "Reads a web page",
        arguments: &[("url", Kind::Text), ("prompt", Kind::Text)],
        required: 1,
        open_world: true,
        ..READS
    },
    ProgramTool {
        name: "WebSearch",
        description: "Searches the web",
        arguments: &[
            ("query", Kind::Text),
            ("allowed_domains", Kind::Any),
            ("blocked_domains", Kind::Any),
        ],
        required: 1,
        open_world: true,
        ..READS
    },
    ProgramTool {
        name: "ReadMcpResourceTool",
        description: "Reads a resource of an MCP server",
        open_world: true,
        ..READS
    },
    ProgramTool {
        name: "ListMcpResourcesTool",
        description: "Lists the resources of MCP servers",
        open_world: true,
        ..READS
    },
    // Calls that sub-agents make are judged themselves.
    ProgramTool {
        name: "Task",
        description: "Lets a sub-agent work on a task",
        ..READS
    },
    ProgramTool {
        name: "Agent",
        description: "Lets a sub-agent work on a task",
        ..READS
    },
    ProgramTool {
        name: "TodoWrite",
        description: "Notes what there is to do",
        ..READS
    },
    ProgramTool {
        name: "AskUserQuestion",
        description: "Asks the user",
        ..READS
    },
    ProgramTool {
        name: "EnterPlanMode",
        description: "Begins to plan",
        ..READS
    },
    ProgramTool {
        name: "ExitPlanMode",
        description: "Shows the plan to the user",
        ..READS
    },
    ProgramTool {
        name: "Skill",
        description: "Reads instructions of the user",
        ..READS
    },
    ProgramTool {
        name: "ToolSearch",
        description: "Searches tools",
        ..READS
    },
];

const CODEX: &[ProgramTool] = &[
    BASH,
    ProgramTool {
        name: "apply_patch",
        description: "Changes files by a patch",
        arguments: &[("patch", Kind::Text)],
        required: 1,
        ..WRITES
    },
    ProgramTool {
        name: "update_plan",
        description: "Notes the plan",
        ..READS
    },
    ProgramTool {
        name: "view_image",
        description: "Reads an image",
        arguments: &[("path", Kind::Text)],
        ..READS
    },
    ProgramTool {
        name: "web_search",
        description: "Searches the web",
        arguments: &[("query", Kind::Text)],
        open_world: true,
        ..READS
    },
];

const PROGRAMS: &[(&str, &[ProgramTool])] = &[("claude-code", CLAUDE_CODE), ("codex", CODEX)];

/// The names of the programs whose tools are known.
pub fn outside_programs() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(name, _)| *name)
}

/// The specifications of the known tools of a program.
///
/// # Errors
/// If one of them is not valid, which is a defect.
pub fn outside_tools(program: &str) -> Result<Vec<ToolSpecification>, String> {
    let tools = PROGRAMS.iter().find(|(name, _)| *name == program);
    let tools = tools.map(|(_, tools)| *tools).unwrap_or_default();
    tools
        .iter()
        .map(|tool| declared(tool, &Map::new()))
        .collect()
}

/// The specification of the tool of a program, for a call with these arguments; `None` if the program is not known. What
/// is not known of the tool is not declared, so that its name and its arguments decide about its risk.
pub(super) fn specification(
    program: &str,
    name: &str,
    arguments: &Map<String, Value>,
) -> Option<Result<ToolSpecification, String>> {
    let (_, tools) = PROGRAMS.iter().find(|(known, _)| *known == program)?;
    Some(match tools.iter().find(|tool| tool.name == name) {
        Some(tool) => declared(tool, arguments),
        None => undeclared(name, arguments),
    })
}

fn declared(
    tool: &ProgramTool,
    arguments: &Map<String, Value>,
) -> Result<ToolSpecification, String> {
    let fields = tool
        .arguments
        .iter()
        .enumerate()
        .map(|(index, (name, kind))| {
            let kind = match kind {
                Kind::Text => Type::Text,
                Kind::Number => Type::Number,
                Kind::Flag => Type::Boolean,
                Kind::Any => Type::Any,
            };
            match index < tool.required {
                true => Field::required(*name, kind),
                false => Field::optional(*name, kind),
            }
        });
    let attributes = ToolAttributes {
        risk: Some(tool.risk),
        open_world: tool.open_world.then_some(true),
        undo_window_seconds: (tool.risk == RiskLevel::ReversibleWithDelay).then_some(0),
        ..ToolAttributes::default()
    };
    made(
        tool.name,
        tool.description,
        fields.collect(),
        arguments,
        attributes,
    )
}

/// A tool of which only the name is known. The names of tools of servers are the servers', so they prove nothing.
fn undeclared(name: &str, arguments: &Map<String, Value>) -> Result<ToolSpecification, String> {
    let is_of_server = name.starts_with("mcp__");
    let attributes = ToolAttributes {
        risk: is_of_server.then_some(RiskLevel::Irreversible),
        open_world: is_of_server.then_some(true),
        ..ToolAttributes::default()
    };
    made(
        name,
        "A tool of another program",
        Vec::new(),
        arguments,
        attributes,
    )
}

fn made(
    name: &str,
    description: &str,
    mut fields: Vec<Field>,
    arguments: &Map<String, Value>,
    attributes: ToolAttributes,
) -> Result<ToolSpecification, String> {
    // Programs add arguments over time.
    for argument in arguments.keys() {
        if fields.iter().all(|field| field.name != *argument) {
            fields.push(Field::optional(argument.clone(), Type::Any));
        }
    }
    let wrong = |error: &dyn ToString| error.to_string();
    let signature = Signature::new(fields, Type::Any).map_err(|error| wrong(&error))?;
    let name = ToolName::new(name).map_err(|error| format!("the name of the tool: {error}"))?;
    let description = NonEmptyText::new(description).map_err(|error| wrong(&error))?;
    ToolSpecification::new(name, description, signature)
        .with_attributes(attributes)
        .map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_core::risk::ToolRisk;

    use super::*;

    fn risk(program: &str, tool: &str, arguments: Value) -> RiskLevel {
        let Value::Object(arguments) = arguments else {
            panic!("no object");
        };
        let specification = specification(program, tool, &arguments).unwrap().unwrap();
        assert!(
            specification
                .signature()
                .misfits(&Value::Object(arguments.clone()))
                .is_empty()
        );
        ToolRisk::of_specification(&specification)
            .with_arguments(&arguments)
            .level
    }

    #[test]
    fn all_known_tools_have_valid_specifications() {
        for program in outside_programs() {
            assert!(outside_tools(program).unwrap().len() >= 5, "{program}");
        }
        assert!(specification("unknown", "Bash", &Map::new()).is_none());
    }

    #[test]
    fn the_command_decides_about_the_risk_of_a_shell() {
        for program in ["claude-code", "codex"] {
            let bash = |command: &str| risk(program, "Bash", json!({"command": command}));
            assert_eq!(bash("ls -l src"), RiskLevel::Reversible, "{program}");
            assert_eq!(bash("git status"), RiskLevel::Reversible);
            assert_eq!(bash("rm -rf /srv/data"), RiskLevel::Irreversible);
            assert_eq!(bash("git push --force"), RiskLevel::Irreversible);
        }
    }

    #[test]
    fn writing_is_no_reading_and_tools_of_servers_count_as_irreversible() {
        let write = json!({"file_path": "src/a.rs", "content": "fn a() {}"});
        assert_eq!(
            risk("claude-code", "Write", write),
            RiskLevel::ReversibleWithDelay
        );
        let read = json!({"file_path": "src/a.rs", "pages": "1-2"});
        assert_eq!(risk("claude-code", "Read", read), RiskLevel::Reversible);
        let patch = json!({"patch": "*** Begin Patch\n*** Update File: a.rs\n*** End Patch"});
        assert_eq!(
            risk("codex", "apply_patch", patch),
            RiskLevel::ReversibleWithDelay
        );
        let server = json!({"id": 4});
        assert_eq!(
            risk("claude-code", "mcp__db__get_row", server),
            RiskLevel::Irreversible
        );
    }
}
