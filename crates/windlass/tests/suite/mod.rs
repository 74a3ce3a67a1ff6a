mod bad_input;
mod batches;
mod commands;
mod documentation;
mod program;
mod runs;
