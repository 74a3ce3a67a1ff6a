use windlass_core::gate::Permit;

fn copy(permit: &Permit) -> Permit {
    permit.clone()
}

fn main() {}
