//! `windlass memory`: what agents remember, seen and tended by the person they work for.

mod export;
mod import;

use serde_json::{Value, json};
use windlass_service::{Identity, MemoryFile, NewMemoryDocument, Service, read_memory_text};
use windlass_store::{MemoryHit, RememberOutcome, Remembered, ScopeStatistics, StoredDocument};

use super::Outcome;
use super::arguments::{
    Memory as Typed, MemoryAdd, MemoryCommand, MemoryForget, MemoryList, MemoryPlain, MemorySearch,
};
use super::live::bar;
use super::moments::ago;
use super::program::Program;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};

/// How much of a chunk is shown to people.
const SHOWN: usize = 300;

/// The memory of the user who typed the command.
#[derive(Clone)]
struct Own {
    service: Service,
    identity: Identity,
}

pub(super) fn run(program: &Program, command: &Typed) -> anyhow::Result<Outcome> {
    let own = Own {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
    };
    match &command.command {
        MemoryCommand::Add(command) => add(&own, command),
        MemoryCommand::Search(command) => search(&own, command),
        MemoryCommand::List(command) => list(&own, command),
        MemoryCommand::Forget(command) => forget(&own, command),
        MemoryCommand::Import(command) => import::run(&own, command),
        MemoryCommand::Export(command) => export::run(&own, command),
        MemoryCommand::Stats(command) => statistics(&own, command),
        MemoryCommand::Compact(command) => compact(&own, command),
        MemoryCommand::Reembed(command) => reembed(&own, command),
    }
}

fn add(own: &Own, command: &MemoryAdd) -> anyhow::Result<Outcome> {
    let limit = own.service.max_document_bytes();
    let (title, text, source) = match (&command.file, command.text.as_deref()) {
        (Some(file), _) => {
            let read = MemoryFile::read(file, limit)?;
            (read.title, read.text, Some(read.source))
        }
        (None, Some("-")) => (
            None,
            read_memory_text(std::io::stdin().lock(), limit)?,
            None,
        ),
        (None, text) => (None, text.unwrap_or_default().to_owned(), None),
    };
    let new = NewMemoryDocument {
        reach: command.scope.clone(),
        text,
        title: command.title.clone().or(title),
        source: command.source.clone().or(source),
        is_untrusted: command.untrusted,
    };
    let stored = own.service.add_memory(&own.identity, new)?;
    match command.json {
        true => put(&format!("{}\n", json!(stored)))?,
        false => say(&told(&stored))?,
    }
    Ok(Outcome::Done)
}

fn told(stored: &Remembered) -> String {
    let Remembered { id, chunks, .. } = stored;
    let parts = match chunks {
        1 => String::new(),
        chunks => format!(" in {chunks} parts"),
    };
    match stored.outcome {
        RememberOutcome::Added => format!("remembered as {id}{parts}"),
        RememberOutcome::Replaced => format!("remembered as {id}{parts}, in place of what it was"),
        RememberOutcome::Known => format!("known already as {id}; its time is noted"),
    }
}

fn search(own: &Own, command: &MemorySearch) -> anyhow::Result<Outcome> {
    let (scopes, limit) = (&command.scope, usize::from(command.limit));
    let hits = own
        .service
        .search_memory(&own.identity, scopes, &command.query, limit)?;
    if command.json {
        for hit in &hits {
            put(&format!("{}\n", json!(hit)))?;
        }
    } else if hits.is_empty() {
        complain("nothing was found")?;
    } else {
        let shown: Vec<String> = hits.iter().map(|hit| drawn(own, hit)).collect();
        say(&shown.join("\n\n"))?;
    }
    Ok(Outcome::from_success(!hits.is_empty()))
}

fn drawn(own: &Own, hit: &MemoryHit) -> String {
    let title = hit.title.as_deref().or(hit.source.as_deref());
    let mut about = vec![
        hit.why.clone(),
        hit.scope.to_string(),
        ago(hit.stored_at, own.service.now()),
    ];
    about.extend(hit.source.iter().map(|source| one_line(source, 100)));
    if hit.tainted {
        about.push("untrusted".to_owned());
    }
    format!(
        "{:.3}  {}  {}\n       {}\n       {}",
        hit.score,
        hit.document,
        one_line(title.unwrap_or("-"), 80),
        about.join(" · "),
        one_line(&hit.text, SHOWN)
    )
}

fn list(own: &Own, command: &MemoryList) -> anyhow::Result<Outcome> {
    let documents = own
        .service
        .list_memory(&own.identity, &command.scope, 0, command.limit)?;
    if command.json {
        for document in &documents {
            put(&format!("{}\n", json!(document)))?;
        }
        return Ok(Outcome::Done);
    }
    if documents.is_empty() {
        complain("nothing is remembered\nhint: windlass memory add \"TEXT\"")?;
        return Ok(Outcome::Done);
    }
    let row = |document: &StoredDocument| {
        let title = document.title.as_deref().or(document.source.as_deref());
        let mut title = one_line(title.unwrap_or("-"), 60);
        if document.tainted {
            title.push_str("  (untrusted)");
        }
        [
            document.id.clone(),
            document.scope.to_string(),
            document.bytes.to_string(),
            ago(document.updated_at, own.service.now()),
            title,
        ]
    };
    let rows: Vec<[String; 5]> = documents.iter().map(row).collect();
    say_table(["DOCUMENT", "SCOPE", "BYTES", "TOLD", "TITLE"], &rows)?;
    Ok(Outcome::Done)
}

fn forget(own: &Own, command: &MemoryForget) -> anyhow::Result<Outcome> {
    let documents = own
        .service
        .forget_memory(&own.identity, &command.scope, &command.ids)?;
    for document in &documents {
        match command.json {
            true => put(&format!(
                "{}\n",
                json!({"id": document.id, "forgotten": true})
            ))?,
            false => say(&format!("forgot {}", document.id))?,
        }
    }
    if !command.json {
        complain("hint: `windlass memory compact` takes it out of the file, too")?;
    }
    Ok(Outcome::Done)
}

fn statistics(own: &Own, command: &MemoryPlain) -> anyhow::Result<Outcome> {
    let statistics = own.service.memory_statistics(&own.identity)?;
    if command.json {
        put(&format!("{}\n", json!(statistics)))?;
        return Ok(Outcome::Done);
    }
    let row = |scope: &ScopeStatistics| {
        [
            scope.scope.to_string(),
            scope.documents.to_string(),
            scope.chunks.to_string(),
            scope.bytes.to_string(),
            scope.tainted.to_string(),
        ]
    };
    let rows: Vec<[String; 5]> = statistics.scopes.iter().map(row).collect();
    say_table(["SCOPE", "DOCUMENTS", "PARTS", "BYTES", "UNTRUSTED"], &rows)?;
    let embedder = statistics.embedder.as_deref().unwrap_or("none yet");
    let whole = match statistics.is_whole {
        true => "",
        false => ", being re-embedded: go on with `windlass memory reembed`",
    };
    say(&format!("embedder: {embedder}{whole}"))?;
    say(&format!("database: {} bytes", statistics.database_bytes))?;
    Ok(Outcome::Done)
}

fn compact(own: &Own, command: &MemoryPlain) -> anyhow::Result<Outcome> {
    let compacted = own.service.compact_memory(&own.identity)?;
    let (before, after) = (compacted.bytes_before, compacted.bytes_after);
    match command.json {
        true => put(&format!(
            "{}\n",
            json!({"bytes_before": before, "bytes_after": after})
        ))?,
        false => say(&format!("compacted from {before} to {after} bytes"))?,
    }
    Ok(Outcome::Done)
}

fn reembed(own: &Own, command: &MemoryPlain) -> anyhow::Result<Outcome> {
    let progress = bar("parts", 0);
    let done = own.service.reembed_memory(&own.identity, |done, all| {
        progress.set_length(all);
        progress.set_position(done);
    });
    progress.finish_and_clear();
    let chunks = done?;
    let told: Value = json!({ "embedded": chunks });
    match (command.json, chunks) {
        (true, _) => put(&format!("{told}\n"))?,
        (false, 0) => say("all vectors are of this version's embedder; nothing to do")?,
        (false, chunks) => say(&format!("{chunks} parts embedded anew"))?,
    }
    Ok(Outcome::Done)
}
