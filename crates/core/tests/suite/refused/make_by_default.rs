use windlass_core::gate::Permit;

fn make() -> Permit {
    <Permit as Default>::default()
}

fn main() {}
