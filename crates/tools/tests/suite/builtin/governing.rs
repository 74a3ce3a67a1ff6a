//! An agent works under its rules and never on them: the file tools refuse what governs agents, however it is
//! reached, in this project and in others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use windlass_spec::ErrorCategory;
use windlass_tools::{BuiltinSettings, FileSettings};

use super::{done, failed};

const LIBRARY: &str = "[tools.look]\ncommand = [\"sh\", \"look.sh\"]\n";

/// A project whose root is the project itself, as a careless operator configures it.
struct Project {
    home: TempDir,
    settings: BuiltinSettings,
}

impl Project {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        for directory in ["tools", "data", "notes"] {
            fs::create_dir_all(project.join(directory)).unwrap();
        }
        for (name, text) in [
            ("tools/office.lib", LIBRARY),
            ("tools/look.sh", "echo found"),
            ("data/windlass.db", ""),
            ("data/secret.txt", "secret"),
            ("notes/plan.txt", "lift"),
        ] {
            fs::write(project.join(name), text).unwrap();
        }
        let files = FileSettings::named([
            ("project", project.clone()),
            ("notes", project.join("notes")),
            ("home", home.path().to_owned()),
        ])
        .unwrap()
        .protecting([project.join("tools/office.lib"), project.join("data")])
        .governed_by([project.join("tools/look.sh"), project.join("later.sh")]);
        let settings = BuiltinSettings {
            files: Some(files),
            ..BuiltinSettings::default()
        };
        Self { home, settings }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("project").join(name)
    }

    async fn assert_refused(&self, path: &str) {
        let write = json!({"path": path, "content": "echo pwned", "mode": "overwrite"});
        for (tool, arguments) in [
            ("write_file", write),
            ("delete_file", json!({"path": path})),
        ] {
            let failure = failed(&self.settings, tool, arguments).await;
            assert_eq!(
                failure.category,
                ErrorCategory::PermissionDenied,
                "{tool} {path}: {}",
                failure.model_message
            );
        }
    }

    async fn write(&self, path: &str, content: &str) {
        let arguments = json!({"path": path, "content": content, "mode": "overwrite"});
        done(&self.settings, "write_file", arguments).await;
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

#[tokio::test]
async fn governing_files_are_refused_under_each_root_and_spelling() {
    let project = Project::new();
    for path in [
        "project/tools/office.lib",
        "project/tools/look.sh",
        "project/./tools//look.sh",
        "project/notes/../tools/look.sh",
        "home/project/tools/look.sh",
        "home/project/tools/office.lib",
        "project/tools/LOOK.sh",
        "project/later.sh",
        "project/Later.SH",
        "project/data/secret.txt",
        "project/data/new.txt",
    ] {
        let write = json!({"path": path, "content": "echo pwned", "mode": "overwrite"});
        let failure = failed(&project.settings, "write_file", write).await;
        let message = &failure.model_message;
        assert!(
            message.contains("agents must not access") || message.contains(".."),
            "{path}: {message}"
        );
    }
    project.assert_refused("project/tools/look.sh").await;
    assert_eq!(project.text("tools/look.sh"), "echo found");
    assert!(!project.path("later.sh").exists());
    // Programs may be read, libraries and data not.
    let read = done(
        &project.settings,
        "read_file",
        json!({"path": "project/tools/look.sh"}),
    );
    assert_eq!(read.await["text"], "echo found");
    for path in ["project/tools/office.lib", "project/data/secret.txt"] {
        failed(&project.settings, "read_file", json!({"path": path})).await;
    }
    project.write("notes/plan.txt", "lower").await;
    assert_eq!(project.text("notes/plan.txt"), "lower");
}

#[tokio::test]
async fn links_do_not_lead_to_governing_files() {
    let project = Project::new();
    fs::hard_link(
        project.path("tools/look.sh"),
        project.path("notes/hard.txt"),
    )
    .unwrap();
    fs::hard_link(
        project.path("tools/office.lib"),
        project.path("notes/library.txt"),
    )
    .unwrap();
    symlink(project.path("tools"), project.path("notes/soft")).unwrap();
    symlink(
        project.path("tools/look.sh"),
        project.path("notes/soft.txt"),
    )
    .unwrap();
    for path in [
        "notes/hard.txt",
        "notes/library.txt",
        "notes/soft/look.sh",
        "notes/soft.txt",
    ] {
        project.assert_refused(path).await;
    }
    assert_eq!(project.text("tools/look.sh"), "echo found");
    let read = json!({"path": "notes/library.txt"});
    failed(&project.settings, "read_file", read).await;
}

#[tokio::test]
async fn a_renamed_directory_does_not_lead_to_governing_files() {
    let project = Project::new();
    fs::rename(project.path("tools"), project.path("moved")).unwrap();
    fs::rename(project.path("data"), project.path("notes/data")).unwrap();
    for path in [
        "project/moved/look.sh",
        "project/moved/office.lib",
        "notes/data/secret.txt",
    ] {
        project.assert_refused(path).await;
    }
    // A program that was replaced by an editor is another file at the same place.
    fs::create_dir(project.path("tools")).unwrap();
    fs::write(project.path("tools/look.sh"), "echo new").unwrap();
    project.assert_refused("project/tools/look.sh").await;
}

#[tokio::test]
async fn files_that_govern_agents_of_other_projects_are_refused() {
    let project = Project::new();
    let other = project.path("notes/other");
    fs::create_dir_all(other.join("state/playbooks")).unwrap();
    fs::write(other.join("state/windlass.db"), "").unwrap();
    fs::write(other.join("library.toml"), LIBRARY).unwrap();
    for name in [
        "windlass.toml",
        "Windlass.TOML",
        "agent.gram",
        "agent.GRAM",
        "rules.cedar",
        "state/playbooks/new.jsonl",
        "state/windlass.db-wal",
        "library.toml",
        "windlass.db",
    ] {
        let path = format!("notes/other/{name}");
        let write = json!({"path": path, "content": "x = 1", "mode": "overwrite"});
        let failure = failed(&project.settings, "write_file", write).await;
        let message = &failure.model_message;
        assert!(message.contains("agents must not access"), "{message}");
    }
    let write = json!({"path": "notes/other/new.toml", "content": LIBRARY});
    failed(&project.settings, "write_file", write).await;
    assert!(!Path::new(&other).join("new.toml").exists());
    project
        .write("notes/other/settings.toml", "[tools]\ncolour = 1")
        .await;
    project.write("notes/other/grammar.txt", "fine").await;
}

#[tokio::test]
async fn a_root_in_a_data_directory_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("state/playbooks");
    fs::create_dir_all(&root).unwrap();
    fs::write(home.path().join("state/windlass.db"), "").unwrap();
    let settings = BuiltinSettings {
        files: Some(FileSettings::new([&root]).unwrap()),
        ..BuiltinSettings::default()
    };
    let write = json!({"path": "new.jsonl", "content": "x"});
    failed(&settings, "write_file", write).await;
}
