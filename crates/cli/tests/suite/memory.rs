//! Memory: add, search, import, export and forget documents.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::program::{TestProject, example};
#[cfg(unix)]
use super::session::Session;

/// Returns the JSON lines on standard output, and the exit code.
fn json(project: &TestProject, arguments: &[&str]) -> (Vec<Value>, i32) {
    let output = project
        .command(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), output.status.code().unwrap())
}

fn write_files(project: &TestProject, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = project.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn count(project: &TestProject) -> usize {
    json(project, &["memory", "list", "--json", "--limit", "10000"])
        .0
        .len()
}

/// Exports the memory of a project to a file of it.
fn export_memory(project: &TestProject) -> PathBuf {
    let export = project.command(&["memory", "export"]).output().unwrap();
    let path = project.path("kept.jsonl");
    std::fs::write(&path, &export.stdout).unwrap();
    path
}

#[test]
fn documents_are_added_searched_listed_and_deleted() {
    let project = TestProject::new();
    let (added, code) = json(
        &project,
        &[
            "memory",
            "add",
            "The March invoice is paid.",
            "--title",
            "Invoice",
            "--scope",
            "agent:clerk",
            "--json",
        ],
    );
    assert_eq!((added[0]["outcome"].as_str(), code), (Some("added"), 0));
    let id = added[0]["id"].as_str().unwrap().to_owned();
    let again = project.run(&[
        "memory",
        "add",
        "The March invoice is paid.",
        "--scope",
        "agent:clerk",
    ]);
    assert!(
        again.contains(&format!("already stored as {id}")),
        "{again}"
    );
    let piped = project.run_with_input(
        &["memory", "add", "-", "--untrusted"],
        "The cat is called Mill.\n",
    );
    assert!(piped.contains("stored as doc-"), "{piped}");

    let found = project.run(&["memory", "search", "was the invoice paid"]);
    assert!(
        found.contains(&id) && found.contains("words: the, invoice, paid"),
        "{found}"
    );
    let (hits, _) = json(
        &project,
        &["memory", "search", "cat", "--json", "--limit", "1"],
    );
    assert_eq!(hits[0]["text"], "The cat is called Mill.");
    assert_eq!(hits[0]["tainted"], true);
    let (hits, _) = json(
        &project,
        &[
            "memory",
            "search",
            "cat",
            "--json",
            "--scope",
            "agent:clerk",
        ],
    );
    assert!(hits.iter().all(|hit| hit["scope"] == "agent:clerk"));
    let nowhere = project.run(&["memory", "search", "cat", "--scope", "run:r1"]);
    assert!(
        nowhere.contains("no documents found") && nowhere.contains("exit code 1"),
        "{nowhere}"
    );

    let listed = project.run(&["memory", "list"]);
    assert!(
        listed.contains("Invoice") && listed.contains("(untrusted)"),
        "{listed}"
    );
    let (statistics, _) = json(&project, &["memory", "stats", "--json"]);
    assert_eq!(statistics[0]["scopes"].as_array().unwrap().len(), 2);

    let forgotten = project.run(&["memory", "forget", &id[..12]]);
    assert!(forgotten.contains(&format!("deleted {id}")), "{forgotten}");
    let gone = project.run(&["memory", "forget", &id]);
    assert!(
        gone.contains("there is no document") && gone.contains("exit code 1"),
        "{gone}"
    );
    let compacted = project.run(&["memory", "compact"]);
    assert!(compacted.contains("compacted from"), "{compacted}");
    for name in ["windlass.db", "windlass.db-wal"] {
        let bytes = std::fs::read(project.path("data").join(name)).unwrap_or_default();
        assert!(
            !bytes.windows(13).any(|window| window == b"March invoice"),
            "{name}"
        );
    }
    let nothing = project.run(&["memory", "reembed"]);
    assert!(nothing.contains("up to date"), "{nothing}");
}

#[test]
fn only_changed_files_are_imported_again() {
    let project = TestProject::new();
    write_files(
        &project,
        &[
            ("docs/a.md", b"# Harvest\n\nThe barley is ripe in July."),
            ("docs/deep/er/b.html", b"<html><title>Mill</title><body><p>The mill &amp; the river.</p><script>x()</script>"),
            ("docs/deep/c.txt", b"Geese fly south."),
            ("docs/.hidden/d.txt", b"Not to be found."),
            ("docs/picture.png", b"\x89PNG\r\n\x00\x01"),
            ("docs/latin.txt", b"caf\xe9"),
            ("docs/empty.txt", b" \n"),
        ],
    );
    let file = std::fs::File::create(project.path("docs/huge.log")).unwrap();
    file.set_len(1 << 30).unwrap();
    drop(file);
    let (lines, code) = json(&project, &["memory", "import", "docs", "--json"]);
    assert_eq!(code, 1, "some were refused");
    let summary = lines.last().unwrap();
    assert_eq!(
        (&summary["added"], &summary["refused"]),
        (&3.into(), &4.into())
    );
    let reason = |name: &str| {
        let line = lines.iter().find(|line| {
            line["path"]
                .as_str()
                .is_some_and(|path| path.ends_with(name))
        });
        line.unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason("huge.log"),
        "the document has 1073741824 bytes; the limit is 16777216 bytes"
    );
    assert!(
        reason("picture.png")
            .starts_with("the document is not text in UTF-8: invalid character at byte 0")
    );
    assert!(reason("latin.txt").ends_with("at byte 3"));
    assert_eq!(
        reason("empty.txt"),
        "there is nothing to remember: the text is empty"
    );
    let (hits, _) = json(
        &project,
        &[
            "memory",
            "search",
            "mill at the river",
            "--json",
            "--limit",
            "1",
        ],
    );
    assert_eq!(hits[0]["title"], "Mill");
    assert!(!hits[0]["text"].as_str().unwrap().contains('<'));
    let (hits, _) = json(
        &project,
        &["memory", "search", "barley", "--json", "--limit", "1"],
    );
    assert_eq!(hits[0]["title"], "Harvest");

    std::fs::write(project.path("docs/deep/c.txt"), "Geese fly north.").unwrap();
    let (lines, _) = json(&project, &["memory", "import", "docs", "--json"]);
    let summary = lines.last().unwrap();
    let counts = ["added", "replaced", "unchanged"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(counts, [0, 1, 2]);
    let found = project.run(&["memory", "search", "geese"]);
    assert!(
        found.contains("north") && !found.contains("south"),
        "{found}"
    );
}

/// Imports `docs`, and returns the counts and all stored texts.
fn imported(project: &TestProject) -> ([u64; 3], Vec<String>) {
    let (lines, code) = json(project, &["memory", "import", "docs", "--json"]);
    assert_eq!(code, 0);
    let summary = lines.last().unwrap();
    let counts = ["added", "replaced", "unchanged"].map(|name| summary[name].as_u64().unwrap());
    let (documents, _) = json(project, &["memory", "export"]);
    let texts = documents.iter().map(|line| line["text"].as_str().unwrap());
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort();
    (counts, texts)
}

#[test]
fn file_that_becomes_a_duplicate_replaces_its_old_text() {
    let project = TestProject::new();
    write_files(
        &project,
        &[
            ("docs/a.txt", b"Geese fly north."),
            ("docs/z.txt", b"Geese fly south."),
        ],
    );
    imported(&project);
    write_files(&project, &[("docs/z.txt", b"Geese fly north.")]);
    assert_eq!(
        imported(&project),
        ([0, 1, 1], vec!["Geese fly north.".to_owned()])
    );
    assert_eq!(imported(&project).0, [0, 0, 2]);
}

#[test]
fn copy_of_a_file_is_kept_when_the_file_changes() {
    let project = TestProject::new();
    write_files(&project, &[("docs/z.txt", b"Geese fly south.")]);
    imported(&project);
    write_files(&project, &[("docs/a.txt", b"Geese fly south.")]);
    assert_eq!(imported(&project).0, [0, 0, 2]);
    write_files(&project, &[("docs/z.txt", b"Geese fly north.")]);
    let both = vec!["Geese fly north.".to_owned(), "Geese fly south.".to_owned()];
    assert_eq!(imported(&project), ([0, 1, 1], both));
    let (documents, _) = json(&project, &["memory", "list", "--json"]);
    let mut sources: Vec<&str> = documents
        .iter()
        .map(|document| document["title"].as_str().unwrap())
        .collect();
    sources.sort_unstable();
    assert_eq!(sources, ["a.txt", "z.txt"]);
}

#[test]
fn export_and_import_preserve_documents() {
    let project = TestProject::new();
    let long = "A sentence that is said many times over. ".repeat(100);
    project.run(&[
        "memory",
        "add",
        &long,
        "--title",
        "Long",
        "--scope",
        "agent:clerk",
    ]);
    project.run(&[
        "memory",
        "add",
        "From an untrusted page.",
        "--untrusted",
        "--source",
        "letter",
    ]);
    let (other, path) = (TestProject::new(), export_memory(&project));
    let export = std::fs::read(&path).unwrap();
    let output = other.run(&["memory", "import", path.to_str().unwrap()]);
    assert!(
        output.contains("2 added, 0 replaced, 0 unchanged, 0 refused"),
        "{output}"
    );
    let again = other
        .command(&["memory", "export"])
        .output()
        .unwrap()
        .stdout;
    assert_eq!(
        String::from_utf8(again).unwrap(),
        String::from_utf8(export.clone()).unwrap()
    );
    let piped = other.run_with_input(&["memory", "import", "-"], &export);
    assert!(piped.contains("2 unchanged"), "{piped}");
    let broken = other.run_with_input(&["memory", "import", "-"], "{\"a\": 1}\n\n{}");
    assert!(
        broken.contains("refused -:1: this is not a line of an export"),
        "{broken}"
    );
    assert!(
        broken.contains("refused -:3") && broken.contains("exit code 1"),
        "{broken}"
    );
}

#[test]
fn bad_input_is_refused_and_loses_no_document() {
    let project = TestProject::new()
        .with("huge.txt", "")
        .with("binary.bin", b"ab\0c");
    project.run(&["memory", "add", "What was there."]);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(project.path("huge.txt"))
        .unwrap();
    file.set_len(1 << 30).unwrap();
    let refusals: [(&[&str], &str); 10] = [
        (
            &["memory", "add", "--file", "huge.txt"],
            "the document has 1073741824 bytes; the limit is 16777216",
        ),
        (
            &["memory", "add", "--file", "binary.bin"],
            "not text in UTF-8: NUL character at byte 2",
        ),
        (
            &["memory", "add", "--file", "missing.txt"],
            "`missing.txt` cannot be read",
        ),
        (&["memory", "add", "--file", "."], "is a directory"),
        (&["memory", "add", ""], "the text is empty"),
        (&["memory", "search", "  "], "the search query is empty"),
        (
            &["memory", "forget", "doc-"],
            "`doc-` is too short to identify a document",
        ),
        (
            &["memory", "forget", "d"],
            "write `doc-` and at least six more characters",
        ),
        (
            &["memory", "forget", "doc-000000"],
            "there is no document `doc-000000`",
        ),
        (&["memory", "import", "nowhere"], "`nowhere` cannot be read"),
    ];
    for (arguments, expected) in refusals {
        let printed = project.run(arguments);
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
        assert!(printed.contains("exit code 1"), "{arguments:?}: {printed}");
    }
    let endless = std::iter::repeat_n(b'x', 17 * 1024 * 1024).collect::<Vec<u8>>();
    let printed = project.run_with_input(&["memory", "add", "-"], endless);
    assert!(
        printed.contains("the document has more than 16777216 bytes"),
        "{printed}"
    );
    let line = "endless ".repeat(200_000);
    let printed = project.run_with_input(&["memory", "add", "-"], line.trim_end());
    assert!(printed.contains(" parts"), "{printed}");
    let wrong = project.run(&["memory", "add", "x", "--scope", "everybody"]);
    assert!(
        wrong.contains("a scope is `agent:NAME`, `principal` or `run:ID`"),
        "{wrong}"
    );
    assert!(wrong.contains("exit code 2"), "{wrong}");
    assert_eq!(count(&project), 2);
}

/// Commands without vectors work on a memory of another embedder.
#[test]
fn memory_of_another_embedder_is_refused_only_for_vector_operations() {
    let project = TestProject::new().with("note.txt", "Geese fly south.");
    for text in ["The kettle is blue.", "The kettle is old."] {
        project.run(&["memory", "add", text]);
    }
    let database = rusqlite::Connection::open(project.path("data/windlass.db")).unwrap();
    database
        .execute(
            "UPDATE memory_settings SET embedder = 'other', fingerprint = ?1, dimension = 512",
            ["0".repeat(32)],
        )
        .unwrap();
    drop(database);
    let refused: [&[&str]; 3] = [
        &["memory", "search", "kettle"],
        &["memory", "add", "The kettle is red."],
        &["memory", "import", "note.txt"],
    ];
    for arguments in refused {
        let output = project.run(arguments);
        for part in [
            "the memory was made with the embedder `other` (512 components), but the current embedder is `static-256` (256 \
             components); their vectors cannot be compared",
            "hint: run `windlass memory reembed` to recompute all vectors; it changes nothing else",
            "exit code 1",
        ] {
            assert!(output.contains(part), "{arguments:?}: {output}");
        }
    }
    assert_eq!(count(&project), 2);
    let (documents, code) = json(&project, &["memory", "export"]);
    assert_eq!((documents.len(), code), (2, 0));
    let (listed, _) = json(&project, &["memory", "list", "--json"]);
    let id = listed[0]["id"].as_str().unwrap();
    let output = project.run(&["memory", "forget", id]);
    assert!(
        output.contains(&format!("deleted {id}")) && output.contains("exit code 0"),
        "{output}"
    );
    assert_eq!(count(&project), 1);
    let output = project.run(&["memory", "stats"]);
    assert!(
        output.contains("embedder: `other` (512 components)"),
        "{output}"
    );
    let output = project.run(&["memory", "reembed"]);
    assert!(output.contains("1 parts re-embedded"), "{output}");
    let output = project.run(&["memory", "search", "kettle"]);
    assert!(output.contains("The kettle is"), "{output}");
}

/// On a terminal, the import of an export shows a progress bar.
#[cfg(unix)]
#[test]
fn import_of_an_export_shows_progress() {
    let project = TestProject::new();
    for number in 0..40 {
        let text = format!("Lot {number} is kept.");
        write_files(
            &project,
            &[(&format!("docs/{number}.txt"), text.as_bytes())],
        );
    }
    project.run(&["memory", "import", "docs"]);
    let (other, path) = (TestProject::new(), export_memory(&project));
    let arguments = ["memory", "import", path.to_str().unwrap()];
    let mut session = Session::at_a_terminal(&other.command(&arguments));
    session.expect(" left");
    session.expect("40 added, 0 replaced, 0 unchanged, 0 refused");
    assert_eq!(session.end(), 0);
}

/// The process is killed around several writes, and each import resumes.
#[test]
fn killed_import_resumes_without_partial_documents() {
    let project = TestProject::new();
    let files = 8;
    for number in 0..files {
        let text = format!("Lot {number} is kept in barn {}. ", number * 7).repeat(60);
        write_files(
            &project,
            &[(&format!("docs/{number}.txt"), text.as_bytes())],
        );
    }
    for (killed_at, most) in [
        ("remember.before#1", 0),
        ("remember.after#1", 1),
        ("remember.before#3", 3),
        ("remember.after#2", 5),
    ] {
        let status = project
            .command(&["memory", "import", "docs"])
            .env("WINDLASS_CRASH_AT", killed_at)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was to be killed at {killed_at}");
        assert_eq!(count(&project), most);
        assert_documents_complete(&project);
    }
    let (lines, code) = json(&project, &["memory", "import", "docs", "--json"]);
    let summary = lines.last().unwrap();
    assert_eq!(
        (
            summary["added"].as_u64(),
            summary["unchanged"].as_u64(),
            code
        ),
        (Some(3), Some(5), 0)
    );
    assert_eq!(count(&project), files);
    assert_documents_complete(&project);
}

/// Checks that every stored document is complete and can be found.
fn assert_documents_complete(project: &TestProject) {
    let export = project
        .command(&["memory", "export"])
        .output()
        .unwrap()
        .stdout;
    for line in String::from_utf8(export).unwrap().lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        let text = document["text"].as_str().unwrap();
        let source = document["source"].as_str().unwrap();
        assert_eq!(text, std::fs::read_to_string(source).unwrap().trim());
        let number = Path::new(source).file_stem().unwrap().to_str().unwrap();
        let (hits, _) = json(
            project,
            &[
                "memory",
                "search",
                &format!("lot {number}"),
                "--json",
                "--limit",
                "1",
            ],
        );
        assert_eq!(hits[0]["source"], source);
    }
}

#[cfg(unix)]
#[test]
fn interrupted_import_ends_after_the_current_file() {
    let project = TestProject::new();
    for number in 0..400 {
        let text = format!("Lot {number} is kept in barn {}. ", number * 7).repeat(200);
        write_files(
            &project,
            &[(&format!("docs/{number}.txt"), text.as_bytes())],
        );
    }
    let mut child = project
        .command(&["memory", "import", "docs", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.next().unwrap().unwrap();
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let summary: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(summary["interrupted"], true);
    let added = summary["added"].as_u64().unwrap();
    assert!(added < 400, "{added}");
    assert_eq!(count(&project) as u64, added);
    let (lines, code) = json(&project, &["memory", "import", "docs", "--json"]);
    assert_eq!(
        (lines.last().unwrap()["unchanged"].as_u64(), code),
        (Some(added), 0)
    );
    assert_eq!(count(&project), 400);
}

/// A memory tool that is called directly acts for the caller and passes the gate.
#[test]
fn memory_tools_can_be_called_directly() {
    let project = TestProject::new().with("newsroom.gram", example("newsroom.gram"));
    let output = project.run(&[
        "tools",
        "call",
        "remember",
        "--library",
        "builtin",
        "content=The kettle is blue.",
    ]);
    assert!(
        output.contains("doc-") && output.contains("exit code 0"),
        "{output}"
    );
    let output = project.run(&["memory", "search", "kettle"]);
    assert!(
        output.contains("The kettle is blue.") && output.contains("agent:by_hand"),
        "{output}"
    );
    let output = project.run(&[
        "tools",
        "call",
        "memory_search",
        "--library",
        "builtin",
        "query=colour of the kettle",
    ]);
    assert!(output.contains("The kettle is blue."), "{output}");
}
