//! Fits the calibration of gap detection to files of labelled cases and prints the source text of
//! `src/gap/shipped.rs`: `cargo run -p windlass-learn --example fit_gaps -- FILE...`.

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let mut cases = Vec::new();
    for file in &files {
        cases.extend(windlass_learn::gap::read_cases(&std::fs::read_to_string(
            file,
        )?)?);
    }
    let about = format!(
        "fitted to {} labelled cases of {} files",
        cases.len(),
        files.len()
    );
    let source = windlass_learn::gap::fit(&cases, &about);
    std::io::stdout().write_all(source.as_bytes())?;
    Ok(())
}
