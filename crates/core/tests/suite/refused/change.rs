use windlass_core::gate::Permit;

fn change(permit: &mut Permit) {
    permit.arguments = serde_json::json!({"amount": 1_000_000});
}

fn main() {}
