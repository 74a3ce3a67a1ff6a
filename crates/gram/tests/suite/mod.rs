mod layout;
mod mistakes;
mod oracle;
mod size;
mod texts;
