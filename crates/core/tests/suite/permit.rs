//! What nobody outside the gate can do with a permit. Each file in `refused` must not compile.

#[test]
fn a_permit_cannot_be_made_copied_or_read_back_outside_the_gate() {
    trybuild::TestCases::new().compile_fail("tests/suite/refused/*.rs");
}
