use std::fs::{Permissions, create_dir_all, set_permissions, write};

use super::*;

/// A directory with these files.
fn directory(files: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        let path = directory.path().join(file);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, "text").unwrap();
    }
    directory
}

fn named(directory: &Path, words: &[&str], writable: &[&str]) -> (Vec<String>, Vec<String>) {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let writable: Vec<PathBuf> = writable.iter().map(PathBuf::from).collect();
    let found = CommandFiles::of(&words, directory, &writable);
    let names = |paths: &[PathBuf]| -> Vec<String> {
        let names = paths.iter().map(|path| {
            let below = path.strip_prefix(directory).unwrap_or(path);
            below.to_string_lossy().into_owned()
        });
        names.collect()
    };
    (names(&found.programs), names(&found.others))
}

#[test]
fn every_way_to_name_a_program_is_found() {
    let project = directory(&["v.sh", "my script.sh", "lib.inc", "tool", "sub/x.sh"]);
    for (words, expected) in [
        (vec!["sh", "v.sh"], "v.sh"),
        (vec!["sh", "tool"], "tool"),
        (vec!["./tool"], "tool"),
        (vec!["sh", "-c", "sh v.sh"], "v.sh"),
        (vec!["sh", "-c", "exec sh v.sh 2>&1"], "v.sh"),
        (vec!["sh", "-ec", "A=1 sh tool; true"], "tool"),
        (vec!["sh", "-c", ". ./lib.inc"], "lib.inc"),
        (vec!["bash", "-c", "source lib.inc && note"], "lib.inc"),
        (vec!["sh", "-c", "sh 'my script.sh'"], "my script.sh"),
        (vec!["sh", "-c", "sh my\\ script.sh"], "my script.sh"),
        (vec!["sh", "-c", "echo \"$(sh \"v.sh\")\""], "v.sh"),
        (vec!["sh", "-c", "echo \"$(sh v.sh)\""], "v.sh"),
        (vec!["sh", "-c", "echo `sh v.sh`"], "v.sh"),
        (vec!["sh", "-c", "sh -c 'sh -c \"sh v.sh\"'"], "v.sh"),
        (vec!["sh", "-c", "cd sub && sh x.sh"], "sub/x.sh"),
        (vec!["env", "A=1", "sh", "tool"], "tool"),
        (vec!["timeout", "5", "sh", "-c", "sh v.sh"], "v.sh"),
        (vec!["sh", "my script.sh"], "my script.sh"),
        (vec!["node", "--require=./v.sh"], "v.sh"),
        (vec!["sh", "-c", "true\nsh v.sh"], "v.sh"),
        (vec!["sh", "-c", "sh $PWD/v.sh"], "v.sh"),
        (vec!["sh", "-c", "sh < tool"], "tool"),
    ] {
        let (programs, _) = named(project.path(), &words, &[]);
        assert!(
            programs.iter().any(|found| found == expected),
            "{words:?}: {programs:?}"
        );
    }
}

#[test]
fn a_package_is_all_its_files() {
    let project = directory(&[
        "pkg/__main__.py",
        "pkg/deep/data.txt",
        "pkg/__pycache__/a.pyc",
        "data/index.txt",
    ]);
    for words in [vec!["python3", "pkg"], vec!["python3", "-m", "pkg"]] {
        let (programs, others) = named(project.path(), &words, &[]);
        assert_eq!(
            programs,
            ["pkg/__main__.py", "pkg/deep/data.txt"],
            "{words:?}"
        );
        assert_eq!(others, Vec::<String>::new());
    }
    let (programs, _) = named(project.path(), &["python3", "pkg"], &["pkg/deep"]);
    assert_eq!(programs, ["pkg/__main__.py"]);
    // A directory of data is not part of the program.
    let (programs, others) = named(project.path(), &["server", "data"], &[]);
    assert_eq!((programs, others), (vec![], vec![]));
}

#[test]
fn declared_and_redirected_files_are_data() {
    let project = directory(&["index.py", "notes.db", "log"]);
    let words = ["python3", "index.py", "notes.db"];
    let (programs, others) = named(project.path(), &words, &[]);
    assert_eq!(
        (programs, others),
        (vec!["index.py".into()], vec!["notes.db".into()])
    );
    let (programs, others) = named(project.path(), &words, &["notes.db", "index.py"]);
    assert_eq!((programs, others), (vec!["index.py".into()], vec![]));
    let line = ["sh", "-c", "echo x >> log 2> log"];
    assert_eq!(named(project.path(), &line, &[]), (vec![], vec![]));
    let line = ["sh", "-c", "cat log"];
    assert_eq!(
        named(project.path(), &line, &[]),
        (vec![], vec!["log".into()])
    );
}

#[test]
fn programs_that_do_not_exist_yet_are_named() {
    let project = directory(&[]);
    let words = ["sh", "later.sh"].map(str::to_owned);
    let found = CommandFiles::of(&words, project.path(), &[]);
    assert_eq!(found.missing, [project.path().join("later.sh")]);
    let words = ["./later".to_owned()];
    let found = CommandFiles::of(&words, project.path(), &[]);
    assert_eq!(found.missing, [project.path().join("./later")]);
}

#[test]
fn a_changed_file_is_found_however_it_was_changed() {
    let project = directory(&["v.sh"]);
    let path = project.path().join("v.sh");
    let missing = project.path().join("missing");
    let snapshot = FileSnapshot::take(&[path.clone(), missing.clone()]);
    assert_eq!(snapshot.changes(), FileDigests::new());
    // The same size and the same times.
    let before = std::fs::metadata(&path).unwrap();
    write(&path, "evil").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(snapshot.changes().len(), 1);
    write(&path, "text").unwrap();
    assert_eq!(snapshot.changes(), FileDigests::new());
    write(&missing, "new").unwrap();
    assert!(snapshot.changes().contains_key(&missing));
}

#[test]
fn files_without_end_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let endless = directory.path().join("endless");
    File::create(&endless)
        .unwrap()
        .set_len(MAX_DIGESTED + 1)
        .unwrap();
    let plain = directory.path().join("plain");
    write(&plain, "text").unwrap();
    let digests = file_digests(&[endless.clone(), plain.clone()]);
    let digest = |path: &Path| &digests[&path.canonicalize().unwrap()];
    assert_eq!(digest(&endless), "");
    assert_eq!(digest(&plain), &reader_digest(&b"text"[..]).unwrap());
    // Its size is 0, and it has bytes.
    let mut left = 1;
    assert!(digest_of_status(&mut left).is_err());
    assert!(digest_of_status(&mut MAX_DIGESTED.clone()).is_ok());
}

fn digest_of_status(left: &mut u64) -> io::Result<String> {
    digest(Path::new("/proc/self/status"), left)
}

#[test]
fn all_digests_together_are_limited() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    write(&path, "12345").unwrap();
    let mut left = 12;
    assert!(digest(&path, &mut left).is_ok());
    assert!(digest(&path, &mut left).is_ok());
    assert_eq!(left, 2);
    assert!(digest(&path, &mut left).is_err());
}

#[test]
fn a_program_is_found_where_a_shell_finds_it() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("1"), directory.path().join("2"));
    for directory in [&first, &second] {
        std::fs::create_dir(directory).unwrap();
        write(directory.join("tool"), "").unwrap();
    }
    let lookup = env::join_paths([&first, &second]).unwrap();
    assert_eq!(program_in(&lookup, "tool"), None);
    set_permissions(second.join("tool"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(program_in(&lookup, "tool"), Some(second.join("tool")));
}
