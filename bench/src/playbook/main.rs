//! Measures how many iterations are saved by what is said in a prompt of what worked before, on the multi-turn
//! tasks of the Berkeley Function Calling Leaderboard, with a scripted policy in the place of a model.

mod policy;

fn main() {
    // There is nothing to measure yet; the policy is laid down before there is.
    let _ = policy::Policy::default();
}
