//! What is impossible with a permit outside the gate. Each file in `refused` must fail to compile.

#[test]
fn permit_cannot_be_made_copied_or_deserialized_outside_the_gate() {
    trybuild::TestCases::new().compile_fail("tests/suite/refused/*.rs");
}
