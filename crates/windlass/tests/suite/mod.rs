mod bad_input;
mod commands;
mod documentation;
mod program;
mod runs;
