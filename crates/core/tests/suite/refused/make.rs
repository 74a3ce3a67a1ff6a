use windlass_core::gate::Permit;
use windlass_spec::ToolName;

fn make(tool: ToolName) -> Permit {
    Permit { tool, arguments: serde_json::json!({}) }
}

fn main() {}
