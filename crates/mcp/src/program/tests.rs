use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

struct Place {
    directory: TempDir,
}

impl Place {
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
        }
    }

    fn program(&self, transport: &CommandTransport) -> Result<Program, ProgramError> {
        program(transport, self.path("bin").as_os_str())
    }
}

fn names(program: &Program, place: &Place) -> Vec<String> {
    let root = place.path("");
    let files = program.files.iter();
    files
        .map(|(path, _)| path.strip_prefix(&root).unwrap().display().to_string())
        .collect()
}

#[test]
fn the_executable_is_looked_up_and_links_are_followed() {
    let place = Place::new();
    let real = place.executable("lib/server.js", "#!/usr/bin/env node");
    fs::create_dir_all(place.path("bin")).unwrap();
    symlink(&real, place.path("bin/server")).unwrap();
    place.write("bin/plain", "not executable");
    let found = place.program(&place.transport("server", &[])).unwrap();
    assert_eq!(found.executable, real);
    assert_eq!(names(&found, &place), ["lib/server.js"]);
    // The digest of the content, as anybody can make it.
    let digest = hexadecimal(&Sha256::digest(b"#!/usr/bin/env node"));
    assert_eq!(found.files[0].1, digest);
    let by_path = place.transport(place.path("bin/server").to_str().unwrap(), &[]);
    assert_eq!(place.program(&by_path).unwrap(), found);
}

#[test]
fn what_cannot_be_started_is_told_with_what_to_do() {
    let place = Place::new();
    let plain = place.write("bin/plain", "x");
    let told = |program: &str| {
        place
            .program(&place.transport(program, &[]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(told("none"), "there is no program `none`");
    assert_eq!(told("plain"), "there is no program `plain`");
    assert!(told(plain.to_str().unwrap()).ends_with("is no file that can be started"));
    assert_eq!(
        told("npx -y thing"),
        "there is no program `npx -y thing`\n\
         hint: no shell reads it; write `npx` as the command and `-y thing` as arguments"
    );
    // Where one happens to stand is no place to look.
    let relative = program(&place.transport("plain", &[]), OsStr::new("bin:.:"));
    assert!(matches!(relative, Err(ProgramError::NotFound { .. })));
}

#[test]
fn files_among_the_arguments_count_and_data_does_not() {
    let place = Place::new();
    place.executable("bin/node", "node");
    for file in [
        "server.js",
        "hook.mjs",
        "noending",
        "notes.db",
        "settings.json",
    ] {
        place.write(file, file);
    }
    place.executable("runs", "runs");
    fs::create_dir_all(place.path("data")).unwrap();
    let absolute = place.path("server.js");
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
    let found = place.program(&place.transport("node", &arguments)).unwrap();
    assert_eq!(
        names(&found, &place),
        ["bin/node", "hook.mjs", "runs", "server.js"]
    );
}

#[test]
fn parts_count_with_everything_in_them() {
    let place = Place::new();
    place.executable("bin/node", "node");
    place.write("lib/a.js", "a");
    place.write("lib/deep/er/b.json", "b");
    place.write("elsewhere/c.js", "c");
    place.write("single.txt", "s");
    symlink("../elsewhere/c.js", place.path("lib/c.js")).unwrap();
    symlink("../elsewhere", place.path("lib/all")).unwrap();
    symlink("..", place.path("lib/deep/round")).unwrap();
    symlink("nowhere", place.path("lib/dangling")).unwrap();
    let mut transport = place.transport("node", &[]);
    transport.parts = vec![place.path("lib"), place.path("single.txt")];
    let before = place.program(&transport).unwrap();
    assert_eq!(
        names(&before, &place),
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
    assert_eq!(place.program(&transport).unwrap(), before);
    // Whatever of it changes is noticed and told.
    place.write("elsewhere/c.js", "evil");
    place.write("lib/new.js", "n");
    fs::remove_file(place.path("single.txt")).unwrap();
    place.write("single.txt", "other");
    fs::remove_file(place.path("lib/a.js")).unwrap();
    let after = place.program(&transport).unwrap();
    assert_ne!(before.digest, after.digest);
    let root = place.path("");
    let told: Vec<String> = before
        .difference(&after)
        .iter()
        .map(|line| line.replace(root.to_str().unwrap(), ""))
        .collect();
    assert_eq!(
        told,
        [
            "`lib/a.js` is gone",
            "`lib/c.js` has another content",
            "`single.txt` has another content",
            "`lib/new.js` is new"
        ]
    );
    assert_eq!(before.difference(&before), Vec::<String>::new());
}

#[test]
fn another_executable_is_told() {
    let place = Place::new();
    place.executable("bin/one", "same");
    place.executable("bin/two", "same");
    let one = place.program(&place.transport("one", &[])).unwrap();
    let two = place.program(&place.transport("two", &[])).unwrap();
    assert_ne!(one.digest, two.digest);
    assert!(one.difference(&two)[0].contains("/bin/two` is started and no longer `"));
}

#[test]
fn what_is_missing_or_no_file_is_an_error() {
    let place = Place::new();
    place.executable("bin/node", "node");
    let mut transport = place.transport("node", &[]);
    transport.parts = vec![place.path("missing")];
    assert!(matches!(
        place.program(&transport),
        Err(ProgramError::Unreadable { .. })
    ));
    let socket = place.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    transport.parts = vec![socket.clone()];
    assert_eq!(
        place.program(&transport),
        Err(ProgramError::Special(socket))
    );
}

#[test]
fn more_files_than_anybody_means_are_refused() {
    let place = Place::new();
    place.executable("bin/node", "node");
    fs::create_dir_all(place.path("many")).unwrap();
    for number in 0..=MAX_FILES {
        File::create(place.path(&format!("many/{number}"))).unwrap();
    }
    let mut transport = place.transport("node", &[]);
    transport.parts = vec![place.path("many")];
    let error = place.program(&transport).unwrap_err();
    assert!(matches!(error, ProgramError::TooManyFiles(_)), "{error}");
}

#[test]
fn more_bytes_than_anybody_means_are_refused() {
    let place = Place::new();
    place.executable("bin/node", "node");
    let huge = File::create(place.path("huge")).unwrap();
    // A file with a hole in it: large to read, and nothing on the disk.
    huge.set_len(MAX_BYTES).unwrap();
    let mut transport = place.transport("node", &[]);
    transport.parts = vec![place.path("huge")];
    let error = place.program(&transport).unwrap_err();
    assert_eq!(error, ProgramError::TooLarge(place.path("huge")));
}

#[test]
fn a_program_is_written_down_and_read_back() {
    let place = Place::new();
    place.executable("bin/node", "node");
    let found = place.program(&place.transport("node", &[])).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(serde_json::from_value::<Program>(json).unwrap(), found);
}
