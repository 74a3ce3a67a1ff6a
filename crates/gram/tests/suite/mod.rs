mod diagnostics;
mod layout;
mod oracle;
mod size;
mod texts;
