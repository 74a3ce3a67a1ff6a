use windlass_core::gate::Permit;

fn make() -> Permit {
    Permit::default()
}

fn main() {}
