//! The calibration that ships: fitted to 880 labelled cases of 2 files.
//! Made by `cargo run -p windlass-learn --example fit_gaps -- FILE...`; not to be changed by hand.

pub(super) const INTERCEPT: f64 = 5.5867;

#[rustfmt::skip] // One weight a line, with what it is of.
pub(super) const WEIGHTS: [f64; 10] = [
    -0.4837, // likeness of task and tool by meaning
    -1.6010, // words of the description that the task covers
    -1.0804, // words of the description's first clause that the task covers
    -1.8864, // words of the name that the task says
    -2.8749, // the word of the name that the task covers least
    -0.4796, // words of the task that the tool covers
    -2.6532, // the first words of the task that the tool covers
    0.1117, // the word of the task that the tool misses most
    1.9492, // required arguments that the task does not give
    -0.6901, // whether the task gives all required arguments
];

/// From here on there is said to be a gap.
pub(super) const THRESHOLD: f64 = 0.5904;
