use windlass_core::gate::Permit;

fn read_back(text: &str) -> Permit {
    serde_json::from_str(text).unwrap()
}

fn main() {}
