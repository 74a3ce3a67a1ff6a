//! `windlass memory`: manages the memory of the user's agents.

mod export;
mod import;

use serde_json::{Value, json};
use windlass_service::types::{
    MemoryHit, RememberOutcome, RememberedDocument, ScopeStatistics, StoredDocument,
};
use windlass_service::{Identity, MemoryFile, NewMemoryDocument, Service, read_memory_text};

use super::CommandOutcome;
use super::arguments::{
    Memory as MemoryArguments, MemoryAdd, MemoryCommand, MemoryForget, MemoryList, MemoryPlain,
    MemorySearch,
};
use super::live::bar;
use super::moments::ago;
use super::program::Program;
use super::table::{one_line, print_table};
use super::terminal::{Quote, eprint_line, print_json, print_line};

/// The maximum length of a shown chunk.
const SHOWN: usize = 300;

/// The service, with the identity whose memory is used.
#[derive(Clone)]
struct MemorySession {
    service: Service,
    identity: Identity,
}

pub(super) fn run(program: &Program, command: &MemoryArguments) -> anyhow::Result<CommandOutcome> {
    let session = MemorySession {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
    };
    match &command.command {
        MemoryCommand::Add(command) => add(&session, command),
        MemoryCommand::Search(command) => search(&session, command),
        MemoryCommand::List(command) => list(&session, command),
        MemoryCommand::Forget(command) => forget(&session, command),
        MemoryCommand::Import(command) => import::run(&session, command),
        MemoryCommand::Export(command) => export::run(&session, command),
        MemoryCommand::Stats(command) => statistics(&session, command),
        MemoryCommand::Compact(command) => compact(&session, command),
        MemoryCommand::Reembed(command) => reembed(&session, command),
    }
}

fn add(session: &MemorySession, command: &MemoryAdd) -> anyhow::Result<CommandOutcome> {
    let limit = session.service.max_document_bytes();
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
    let stored = session.service.add_memory(&session.identity, new)?;
    match command.json {
        true => print_json(&format!("{}\n", json!(stored)))?,
        false => print_line(&describe_stored(&stored))?,
    }
    Ok(CommandOutcome::Done)
}

fn describe_stored(stored: &RememberedDocument) -> String {
    let RememberedDocument { id, chunks, .. } = stored;
    let parts = match chunks {
        1 => String::new(),
        chunks => format!(" in {chunks} parts"),
    };
    match stored.outcome {
        RememberOutcome::Added => format!("stored as {id}{parts}"),
        RememberOutcome::Replaced => {
            format!("stored as {id}{parts}, replacing the earlier version")
        }
        RememberOutcome::Known => format!("already stored as {id}; its time is updated"),
    }
}

fn search(session: &MemorySession, command: &MemorySearch) -> anyhow::Result<CommandOutcome> {
    let (scopes, limit) = (&command.scope, usize::from(command.limit));
    let hits = session
        .service
        .search_memory(&session.identity, scopes, &command.query, limit)?;
    if command.json {
        for hit in &hits {
            print_json(&format!("{}\n", json!(hit)))?;
        }
    } else if hits.is_empty() {
        eprint_line("no documents found")?;
    } else {
        let shown: Vec<String> = hits.iter().map(|hit| describe_hit(session, hit)).collect();
        print_line(&shown.join("\n\n"))?;
    }
    Ok(CommandOutcome::from_success(!hits.is_empty()))
}

fn describe_hit(session: &MemorySession, hit: &MemoryHit) -> String {
    let title = hit.title.as_deref().or(hit.source.as_deref());
    let mut about = vec![
        hit.why.clone(),
        hit.scope.to_string(),
        ago(hit.stored_at, session.service.now()),
    ];
    about.extend(hit.source.iter().map(|source| one_line(source, 100)));
    if hit.tainted {
        about.push("untrusted".to_owned());
    }
    format!(
        "{:.3}  {}  {}\n       {}\n{}",
        hit.score,
        hit.document,
        one_line(title.unwrap_or("-"), 80),
        about.join(" · "),
        Quote::of(&one_line(&hit.text, SHOWN)).block("       ")
    )
}

fn list(session: &MemorySession, command: &MemoryList) -> anyhow::Result<CommandOutcome> {
    let documents =
        session
            .service
            .list_memory(&session.identity, &command.scope, 0, command.limit)?;
    if command.json {
        for document in &documents {
            print_json(&format!("{}\n", json!(document)))?;
        }
        return Ok(CommandOutcome::Done);
    }
    if documents.is_empty() {
        eprint_line("there are no documents\nhint: add one with `windlass memory add \"TEXT\"`")?;
        return Ok(CommandOutcome::Done);
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
            ago(document.updated_at, session.service.now()),
            title,
        ]
    };
    let rows: Vec<[String; 5]> = documents.iter().map(row).collect();
    print_table(["DOCUMENT", "SCOPE", "BYTES", "UPDATED", "TITLE"], &rows)?;
    Ok(CommandOutcome::Done)
}

fn forget(session: &MemorySession, command: &MemoryForget) -> anyhow::Result<CommandOutcome> {
    let documents =
        session
            .service
            .forget_memory(&session.identity, &command.scope, &command.ids)?;
    for document in &documents {
        match command.json {
            true => print_json(&format!(
                "{}\n",
                json!({"id": document.id, "forgotten": true})
            ))?,
            false => print_line(&format!("deleted {}", document.id))?,
        }
    }
    if !command.json {
        eprint_line("hint: run `windlass memory compact` to erase it from the file, too")?;
    }
    Ok(CommandOutcome::Done)
}

fn statistics(session: &MemorySession, command: &MemoryPlain) -> anyhow::Result<CommandOutcome> {
    let statistics = session.service.memory_statistics(&session.identity)?;
    if command.json {
        print_json(&format!("{}\n", json!(statistics)))?;
        return Ok(CommandOutcome::Done);
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
    print_table(["SCOPE", "DOCUMENTS", "PARTS", "BYTES", "UNTRUSTED"], &rows)?;
    let embedder = statistics.embedder.as_deref().unwrap_or("none yet");
    let whole = match statistics.is_whole {
        true => "",
        false => ", re-embedding is incomplete: resume with `windlass memory reembed`",
    };
    print_line(&format!("embedder: {embedder}{whole}"))?;
    print_line(&format!("database: {} bytes", statistics.database_bytes))?;
    Ok(CommandOutcome::Done)
}

fn compact(session: &MemorySession, command: &MemoryPlain) -> anyhow::Result<CommandOutcome> {
    let compacted = session.service.compact_memory(&session.identity)?;
    let (before, after) = (compacted.bytes_before, compacted.bytes_after);
    match command.json {
        true => print_json(&format!(
            "{}\n",
            json!({"bytes_before": before, "bytes_after": after})
        ))?,
        false => print_line(&format!("compacted from {before} to {after} bytes"))?,
    }
    Ok(CommandOutcome::Done)
}

fn reembed(session: &MemorySession, command: &MemoryPlain) -> anyhow::Result<CommandOutcome> {
    let progress = bar("parts", 0);
    let done = session
        .service
        .reembed_memory(&session.identity, |done, all| {
            progress.set_length(all);
            progress.set_position(done);
        });
    progress.finish_and_clear();
    let chunks = done?;
    let object: Value = json!({ "embedded": chunks });
    match (command.json, chunks) {
        (true, _) => print_json(&format!("{object}\n"))?,
        (false, 0) => print_line("all vectors are up to date")?,
        (false, chunks) => print_line(&format!("{chunks} parts re-embedded"))?,
    }
    Ok(CommandOutcome::Done)
}
