mod bad_input;
mod batches;
mod commands;
mod documentation;
mod examples;
mod program;
mod runs;
