//! The steps of a run as JSON, and the files with them that the retention can be told to write.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::run::{Entry, Run};
use windlass_keys::{hex, sha256};
use windlass_runtime::{Progress, Watch, followed, watch_nothing};
use windlass_spec::{CallState, RunId};
use windlass_store::Store;

use crate::json::notices_to_json;
use crate::options::Notice;
use crate::service::Service;

/// The directory of the files, below the data directory.
const DIRECTORY: &str = "reasoning-traces";

/// The longest id of a task that is the name of a file.
const LONGEST_NAME: usize = 100;

/// The steps of a run as JSON, with what was decided about its calls.
#[must_use]
pub fn trace_to_json(run: &Run) -> Value {
    json!({
        "run": run.id(),
        "agent": run.agent().name(),
        "end": run.end(),
        "usage": run.usage(),
        "context": run.context(),
        "intent": run.offer().and_then(|offer| offer.intent.as_ref()),
        "offered": run.tools().iter().map(|tool| tool.name()).collect::<Vec<_>>(),
        "left_out": run.offer().map(|offer| &offer.left_out),
        "disabled": run.offer().map(|offer| &offer.disabled),
        "strategies": followed(run).map(|(recalled, is_followed)| {
            let mut strategy = json!(recalled);
            strategy["followed"] = json!(is_followed);
            strategy
        }).collect::<Vec<_>>(),
        "mistakes": run.mistakes(),
        "response": run.response(),
        "steps": run.steps(),
        "variants": variants(run),
        "decisions": decisions(run),
        "notices": notices_to_json(run),
    })
}

/// Who decided what about which call, and when.
fn decisions(run: &Run) -> Value {
    let entries = run.turns().iter().flat_map(|turn| &turn.entries);
    let decided = entries.filter_map(|entry| {
        let Entry::Call {
            record, progress, ..
        } = entry
        else {
            return None;
        };
        let window_ended = progress.window_ended();
        if progress.settled().is_empty() && window_ended.is_none() {
            return None;
        }
        let settled = progress.settled().iter().map(|question| {
            json!({
                "status": question.status(),
                "security_level": question.question().authorize().map(|asked| asked.security_level),
                "settled_at": question.settled_at(),
                "decisions": question.decisions(),
            })
        });
        Some(json!({
            "call": record.id(),
            "tool": record.tool_name(),
            "requested_arguments": progress.before_edit().unwrap_or(record.arguments()),
            "arguments": record.arguments(),
            "questions": settled.collect::<Vec<_>>(),
            "undone_or_released": window_ended.map(|(by, at)| json!({
                "by": by,
                "at": at,
                "undone": record.state() == CallState::Cancelled,
            })),
        }))
    });
    Value::Array(decided.collect())
}

/// The variant that ran, by call.
fn variants(run: &Run) -> Value {
    let ran = run.calls().filter_map(|call| {
        let variant = run.variant(call.id())?;
        Some((call.id().to_string(), json!(variant)))
    });
    Value::Object(ran.collect())
}

/// The file with the steps of a task: that of a task whose id is no name of a file is named after its digest. Those of
/// the tenant `local` have a shorter path.
fn path(directory: &Path, tenant: &str, name: &str) -> PathBuf {
    let is_plain = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        name.len() <= LONGEST_NAME && name.bytes().all(is_plain) && !name.starts_with('.')
    };
    let plain = |name: &str| match is_plain(name) && !name.is_empty() {
        true => name.to_owned(),
        false => format!("sha256-{}", hex::encode(&sha256(name.as_bytes())[..16])),
    };
    let mut path = directory.join(DIRECTORY);
    if tenant != "local" {
        path.push(format!("tenant-{}", plain(tenant)));
    }
    path.join(format!("{}.json", plain(name)))
}

/// Removes the file with the steps of a run, if there is one. That of a later run of the same task stays.
pub(crate) fn remove_trace(
    directory: &Path,
    tenant: &str,
    run: &RunId,
    task: Option<&str>,
) -> Result<(), (PathBuf, io::Error)> {
    for name in [task, Some(run.as_str())].into_iter().flatten() {
        let path = path(directory, tenant, name);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err((path, error)),
        };
        let trace: Value = serde_json::from_slice(&text).unwrap_or_default();
        if trace["run"] == run.as_str() {
            std::fs::remove_file(&path).map_err(|error| (path, error))?;
        }
    }
    Ok(())
}

/// Writes the file with the steps of a run that has ended.
fn write_trace(store: &Store, directory: &Path, run: &RunId) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let summary = store.summary(run).map_err(|error| failed(&error))?;
    // As it is stored: without secrets, and with all turns.
    let whole = store.fold(run).map_err(|error| failed(&error))?;
    let name = summary.task_id.as_deref().unwrap_or(run.as_str());
    let path = path(directory, &summary.tenant, name);
    if let Some(parent) = path.parent() {
        windlass_files::create_directory(parent).map_err(|error| failed(&error))?;
    }
    let text = format!("{}\n", trace_to_json(&whole));
    windlass_files::replace(&path, text).map_err(|error| failed(&error))
}

impl Service {
    /// The watcher of a run, which also writes the file with its steps at its end, if the configuration wants that.
    pub(crate) fn writing_traces(&self, watch: Option<Watch>) -> Option<Watch> {
        let is_wanted = self
            .project()
            .is_ok_and(|project| project.configuration().retention().trace_files);
        if !is_wanted {
            return watch;
        }
        let (service, inner) = (self.clone(), watch.unwrap_or_else(watch_nothing));
        Some(Arc::new(move |id: &RunId, progress: Progress<'_>| {
            let is_over = matches!(progress, Progress::Done(run) if run.end().is_some());
            inner(id, progress);
            if !is_over {
                return;
            }
            let written = service
                .store()
                .and_then(|store| Ok((store, service.data_directory()?)))
                .map_err(|error| error.to_string())
                .and_then(|(store, directory)| write_trace(&store, &directory, id));
            if let Err(error) = written {
                service.notify(&Notice::Warning(format!(
                    "warning: the steps of the run {id} cannot be written: {error}"
                )));
            }
        }))
    }
}
