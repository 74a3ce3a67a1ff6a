mod bad_input;
mod commands;
mod program;
