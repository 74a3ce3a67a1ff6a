use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

struct TestDirectory {
    directory: TempDir,
}

impl TestDirectory {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn executable(&self, name: &str, content: &str) -> PathBuf {
        let path = self.write(name, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn transport(&self, program: &str, arguments: &[&str]) -> CommandTransport {
        CommandTransport {
            program: program.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            directory: Some(self.path("")),
            environment: BTreeMap::new(),
            parts: Vec::new(),
            access: Default::default(),
        }
    }

    fn program(&self, transport: &CommandTransport) -> Result<Program, ProgramError> {
        program(transport, self.path("bin").as_os_str())
    }
}

fn names(program: &Program, directory: &TestDirectory) -> Vec<String> {
    let root = directory.path("");
    let files = program.files.iter();
    files
        .map(|(path, _)| path.strip_prefix(&root).unwrap().display().to_string())
        .collect()
}

#[test]
fn the_executable_is_looked_up_and_links_are_followed() {
    let directory = TestDirectory::new();
    let real = directory.executable("lib/server.js", "#!/usr/bin/env node");
    fs::create_dir_all(directory.path("bin")).unwrap();
    symlink(&real, directory.path("bin/server")).unwrap();
    directory.write("bin/plain", "not executable");
    let found = directory
        .program(&directory.transport("server", &[]))
        .unwrap();
    assert_eq!(found.executable, real);
    assert_eq!(names(&found, &directory), ["lib/server.js"]);
    // The digest is the plain SHA-256 of the content.
    let digest = hexadecimal(&Sha256::digest(b"#!/usr/bin/env node"));
    assert_eq!(found.files[0].1, digest);
    let by_path = directory.transport(directory.path("bin/server").to_str().unwrap(), &[]);
    assert_eq!(directory.program(&by_path).unwrap(), found);
}

#[test]
fn errors_about_the_executable_have_hints() {
    let directory = TestDirectory::new();
    let plain = directory.write("bin/plain", "x");
    let error = |program: &str| {
        directory
            .program(&directory.transport(program, &[]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error("none"), "the program `none` was not found");
    assert_eq!(error("plain"), "the program `plain` was not found");
    assert!(error(plain.to_str().unwrap()).ends_with("is not an executable file"));
    assert_eq!(
        error("npx -y thing"),
        "the program `npx -y thing` was not found\n\
         hint: the command is not run by a shell; set `npx` as the command and `-y thing` as arguments"
    );
    // The current directory is not searched.
    let relative = program(&directory.transport("plain", &[]), OsStr::new("bin:.:"));
    assert!(matches!(relative, Err(ProgramError::NotFound { .. })));
}

#[test]
fn code_files_among_the_arguments_count_and_data_files_do_not() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    for file in [
        "server.js",
        "hook.mjs",
        "noending",
        "notes.db",
        "settings.json",
    ] {
        directory.write(file, file);
    }
    directory.executable("runs", "runs");
    fs::create_dir_all(directory.path("data")).unwrap();
    let absolute = directory.path("server.js");
    let arguments = [
        "--import=hook.mjs",
        absolute.to_str().unwrap(),
        "noending",
        "runs",
        "--db-path",
        "notes.db",
        "--config=settings.json",
        "data",
        "missing.js",
        "",
    ];
    let found = directory
        .program(&directory.transport("node", &arguments))
        .unwrap();
    assert_eq!(
        names(&found, &directory),
        ["bin/node", "hook.mjs", "runs", "server.js"]
    );
}

#[test]
fn the_script_of_an_interpreter_counts_whatever_its_name_is() {
    let directory = TestDirectory::new();
    for name in ["python3.12", "node", "bash", "server"] {
        directory.executable(&format!("bin/{name}"), name);
    }
    for name in ["main", "other", "notes.db"] {
        directory.write(name, name);
    }
    let files_of = |program: &str, arguments: &[&str]| {
        let found = directory.program(&directory.transport(program, arguments));
        let mut found = names(&found.unwrap(), &directory);
        found.retain(|name| !name.starts_with("bin/"));
        found
    };
    assert_eq!(files_of("python3.12", &["-u", "main", "other"]), ["main"]);
    assert_eq!(files_of("node", &["--test", "main"]), ["main"]);
    assert_eq!(files_of("python3.12", &["-m", "main", "notes.db"]), [""; 0]);
    assert_eq!(files_of("bash", &["-e", "main"]), ["main"]);
    assert_eq!(files_of("bash", &["-c", "main"]), [""; 0]);
    assert_eq!(files_of("server", &["main"]), [""; 0]);
}

#[test]
fn parts_include_everything_in_them() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    directory.write("lib/a.js", "a");
    directory.write("lib/deep/er/b.json", "b");
    directory.write("elsewhere/c.js", "c");
    directory.write("single.txt", "s");
    symlink("../elsewhere/c.js", directory.path("lib/c.js")).unwrap();
    symlink("../elsewhere", directory.path("lib/all")).unwrap();
    symlink("..", directory.path("lib/deep/round")).unwrap();
    symlink("nowhere", directory.path("lib/dangling")).unwrap();
    let mut transport = directory.transport("node", &[]);
    transport.parts = vec![directory.path("lib"), directory.path("single.txt")];
    let before = directory.program(&transport).unwrap();
    assert_eq!(
        names(&before, &directory),
        [
            "bin/node",
            "lib/a.js",
            "lib/all",
            "lib/c.js",
            "lib/dangling",
            "lib/deep/er/b.json",
            "lib/deep/round",
            "single.txt"
        ]
    );
    assert_eq!(directory.program(&transport).unwrap(), before);
    // Every change is detected and described.
    directory.write("elsewhere/c.js", "evil");
    directory.write("lib/new.js", "n");
    fs::remove_file(directory.path("single.txt")).unwrap();
    directory.write("single.txt", "other");
    fs::remove_file(directory.path("lib/a.js")).unwrap();
    let after = directory.program(&transport).unwrap();
    assert_ne!(before.digest, after.digest);
    let root = directory.path("");
    let changes: Vec<String> = before
        .difference(&after)
        .iter()
        .map(|line| line.replace(root.to_str().unwrap(), ""))
        .collect();
    assert_eq!(
        changes,
        [
            "`lib/a.js` was removed",
            "`lib/c.js` was modified",
            "`single.txt` was modified",
            "`lib/new.js` was added"
        ]
    );
    assert_eq!(before.difference(&before), Vec::<String>::new());
}

#[test]
fn another_executable_is_a_change() {
    let directory = TestDirectory::new();
    directory.executable("bin/one", "same");
    directory.executable("bin/two", "same");
    let one = directory.program(&directory.transport("one", &[])).unwrap();
    let two = directory.program(&directory.transport("two", &[])).unwrap();
    assert_ne!(one.digest, two.digest);
    assert!(one.difference(&two)[0].contains("/bin/two`, before it was `"));
}

#[test]
fn missing_and_special_files_are_errors() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    let mut transport = directory.transport("node", &[]);
    transport.parts = vec![directory.path("missing")];
    assert!(matches!(
        directory.program(&transport),
        Err(ProgramError::Unreadable { .. })
    ));
    let socket = directory.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    transport.parts = vec![socket.clone()];
    assert_eq!(
        directory.program(&transport),
        Err(ProgramError::Special(socket))
    );
}

#[test]
fn too_many_files_are_refused() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    fs::create_dir_all(directory.path("many")).unwrap();
    for number in 0..=MAX_FILES {
        File::create(directory.path(&format!("many/{number}"))).unwrap();
    }
    let mut transport = directory.transport("node", &[]);
    transport.parts = vec![directory.path("many")];
    let error = directory.program(&transport).unwrap_err();
    assert!(matches!(error, ProgramError::TooManyFiles(_)), "{error}");
}

#[test]
fn too_many_bytes_are_refused() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    let huge = File::create(directory.path("huge")).unwrap();
    // A sparse file: large to read, but empty on disk.
    huge.set_len(MAX_BYTES).unwrap();
    let mut transport = directory.transport("node", &[]);
    transport.parts = vec![directory.path("huge")];
    let error = directory.program(&transport).unwrap_err();
    assert_eq!(error, ProgramError::TooLarge(directory.path("huge")));
}

#[test]
fn a_program_survives_serialization() {
    let directory = TestDirectory::new();
    directory.executable("bin/node", "node");
    let found = directory
        .program(&directory.transport("node", &[]))
        .unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(serde_json::from_value::<Program>(json).unwrap(), found);
}

/// Takes a snapshot, makes a change, and returns what was found.
fn changes_after(
    directory: &TestDirectory,
    transport: &CommandTransport,
    change: impl FnOnce(),
) -> String {
    let found = find(transport, directory.path("bin").as_os_str()).unwrap();
    let before = ProgramSnapshot::take(transport, &found).unwrap();
    assert_eq!(
        before.changes_since(transport, &found).unwrap(),
        Vec::<String>::new()
    );
    change();
    match before.changes_since(transport, &found) {
        Ok(changes) => changes.join("; "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_snapshot_detects_changes_that_were_undone() {
    let directory = TestDirectory::new();
    let program = directory.executable("bin/server", "first");
    let part = directory.write("parts/data", "data");
    symlink("data", directory.path("parts/link")).unwrap();
    symlink("nothing", directory.path("parts/dangling")).unwrap();
    let mut transport = directory.transport("server", &[]);
    transport.parts = vec![directory.path("parts")];
    let after = |change: &dyn Fn()| changes_after(&directory, &transport, change);
    assert_eq!(after(&|| {}), "");
    let restored = after(&|| {
        fs::write(&program, "other").unwrap();
        fs::write(&program, "first").unwrap();
    });
    assert!(
        restored.contains("server` was changed or moved"),
        "{restored}"
    );
    let moved = after(&|| {
        fs::rename(&part, directory.path("aside")).unwrap();
        fs::rename(directory.path("aside"), &part).unwrap();
    });
    assert!(moved.contains("data` was changed or moved"), "{moved}");
    let copied = after(&|| {
        fs::copy(&part, directory.path("copy")).unwrap();
        fs::rename(directory.path("copy"), &part).unwrap();
    });
    assert!(copied.contains("data` was replaced"), "{copied}");
    for link in ["link", "dangling"] {
        let link = directory.path(&format!("parts/{link}"));
        let target = fs::read_link(&link).unwrap();
        let linked = after(&|| {
            symlink(&target, directory.path("new")).unwrap();
            fs::rename(directory.path("new"), &link).unwrap();
        });
        assert!(
            linked.contains("` was replaced by another file"),
            "{linked}"
        );
    }
    let modified = after(&|| fs::write(&part, "more").unwrap());
    let expected = format!("`{}` was modified", part.display());
    assert!(modified.starts_with(&expected), "{modified}");
}

#[test]
fn every_link_on_the_way_to_a_file_is_found() {
    let directory = TestDirectory::new();
    let file = directory.write("real/file", "x");
    symlink("real", directory.path("directory")).unwrap();
    symlink(directory.path("directory/file"), directory.path("first")).unwrap();
    symlink("./directory/../first", directory.path("second")).unwrap();
    let found: Vec<PathBuf> = links_of(&directory.path("second"))
        .unwrap()
        .into_keys()
        .collect();
    let expected = ["directory", "first", "second"].map(|name| directory.path(name));
    assert_eq!(found, expected);
    assert_eq!(links_of(&file).unwrap().len(), 0);
    symlink("loop", directory.path("loop")).unwrap();
    assert!(links_of(&directory.path("loop")).is_err());
}
