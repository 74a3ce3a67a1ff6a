//! `windlass approvals show`: one request in full, escaped so that its text cannot mislead.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, ApprovalStatus, Ask, Attestation, CredentialUse, Decided, DecisionMeans, Escalation,
    FormRequest, GroupQuorum, Intervene, NamedCall, PersonDecision, Principal, Question, Signer,
};
use windlass_core::risk::Assessment;
use windlass_runtime::now;
use windlass_service::ApprovalDetails;
use windlass_spec::{Field, NonEmptyText, SecurityLevel, Timestamp, Type};

use super::{ApprovalSession, is_clock_behind};
use crate::CommandOutcome;
use crate::arguments::OneQuestion;
use crate::moments::{ago, left};
use crate::rendered::{self, escape_exact, escape_exact_line, escape_indented};
use crate::terminal::{Quote, print_json, print_line};

/// The column of the values.
const MARGIN: usize = 18;

pub(super) fn run(
    session: &ApprovalSession,
    command: &OneQuestion,
) -> anyhow::Result<CommandOutcome> {
    let id = session.id_of(command)?;
    let details = session.service.show_approval(&session.identity, &id)?;
    let (question, run) = (&details.approval, details.run.as_ref());
    if command.json {
        let mut object = session.to_json(question);
        object["agent"] = json!(run.map(|run| run.agent().name()));
        object["assessment"] = json!(details.assessment());
        object["added_by_default"] = json!(run.map(|_| details.defaults()));
        object["commands"] = json!(session.commands(question));
        object["response"] = json!(question.response());
        print_json(&format!("{object}\n"))?;
    } else {
        let commands = session.commands(question);
        print_line(describe(&details, now(), &commands).trim_end())?;
    }
    Ok(CommandOutcome::Done)
}

/// Describes a question in full.
fn describe(details: &ApprovalDetails, now: Timestamp, commands: &[String]) -> String {
    let (question, run) = (&details.approval, details.run.as_ref());
    let request = question.request();
    let mut text = String::new();
    let title = match question.question() {
        Question::Authorize(call) => call.tool_name.to_string(),
        Question::Ask(_) => format!("{} asks", asker(question)),
        Question::Intervene(_) => format!("{} needs manual work", asker(question)),
    };
    let _ = writeln!(text, "{title}");
    let mut field = |name: &str, value: &str| write_field(&mut text, name, value);
    field("id", &question.call().to_string());
    field("status", &status(question));
    if question.status() == ApprovalStatus::Pending {
        let time_left = left(request.expires_at, now).unwrap_or_else(|| "none".to_owned());
        field(
            "time left",
            &format!("{time_left} (until {})", request.expires_at),
        );
    }
    let asked = format!("{} ({})", request.asked_at, ago(request.asked_at, now));
    field("asked", &asked);
    if is_clock_behind(question, now) {
        let note = format!("this machine's clock is {now}, before the time of the request");
        field("clock", &note);
    }
    let agent = run.map_or_else(String::new, |run| format!("{}, ", run.agent().name()));
    let agent = format!("{agent}on behalf of {}", request.principal);
    field("agent", &agent);
    field("run", question.run().as_str());
    if !request.parents.is_empty() {
        let parents: Vec<String> = request.parents.iter().map(ToString::to_string).collect();
        field("works for", &parents.join(" > "));
    }
    text += &head(question);
    if !request.approvers.is_empty() {
        let approvers: Vec<&str> = request.approvers.iter().map(Principal::as_str).collect();
        write_field(&mut text, "may decide", &approvers.join(", "));
    }
    for group in question.groups() {
        write_field(&mut text, "needs", &group_quorum(group));
    }
    if question.request().quorum.is_some() && question.needs_several() {
        let left_out = format!("{}, for whom the run acts", request.principal.principal);
        write_field(&mut text, "does not count", &left_out);
    }
    text += &body(details);
    write_field(&mut text, "digest", &question.digest().to_string());
    for decided in question.decisions() {
        write_field(&mut text, "decided", &decision(decided));
        if let Some(proof) = &decided.proof {
            write_field(
                &mut text,
                "authenticated",
                &authentication(&proof.attestation),
            );
        }
    }
    if question.status() == ApprovalStatus::Pending {
        let _ = writeln!(text, "decide with");
        for command in commands {
            let _ = writeln!(text, "  {command}");
        }
    }
    text
}

/// What the one who asks wants the approver to read first.
fn head(question: &Approval) -> String {
    let request = question.request();
    let mut text = String::new();
    for (name, value) in [
        (
            "message",
            request.message.as_ref().map(NonEmptyText::as_str),
        ),
        ("instruction", request.instruction.as_deref()),
        ("asked to", request.user_id.as_deref()),
    ] {
        if let Some(value) = value {
            write_quoted(&mut text, name, value);
        }
    }
    text
}

/// Describes the question where it is decided: its head and what is asked.
pub(super) fn at_prompt(details: &ApprovalDetails) -> String {
    head(&details.approval) + &body(details)
}

/// Describes what is asked. The approver confirms this text.
fn body(details: &ApprovalDetails) -> String {
    let question = &details.approval;
    let mut text = String::new();
    match question.question() {
        Question::Authorize(call) => {
            let assessment = details.assessment();
            let mut field = |name: &str, value: &str| write_field(&mut text, name, value);
            field("tool", call.tool_name.as_str());
            field("risk", &risk(call.risk.as_str(), assessment.as_ref()));
            field("security level", &describe_level(call.security_level));
            match question.asker() {
                None => field("reason", call.reason.as_str()),
                Some(author) => {
                    field("asked by", &author);
                    write_quoted(&mut text, "reason", call.reason.as_str());
                }
            }
            let mut field = |name: &str, value: &str| write_field(&mut text, name, value);
            if let Some(rule) = &call.rule {
                field("rule", rule);
            }
            if let Some(credentials) = &call.credentials {
                field("credentials", &credential_use(credentials));
            }
            let named = question.request().named_call.as_ref();
            if let Some(NamedCall {
                tool_name,
                tool_args,
            }) = named
            {
                let name = escape_exact_line(tool_name);
                write_quoted(
                    &mut text,
                    "names the call",
                    &format!("{name} {}", object(tool_args)),
                );
            }
            let mut field = |name: &str, value: &str| write_field(&mut text, name, value);
            let current = question.arguments().unwrap_or(&call.tool_args);
            field("arguments", &object(current));
            if current != &call.tool_args {
                field("first requested", &object(&call.tool_args));
            }
            let defaults = details.defaults();
            if !defaults.is_empty() {
                field("default values", &object(&defaults));
            }
        }
        Question::Ask(ask) => {
            write_field(&mut text, "asked by", &asker(question));
            write_ask(&mut text, ask);
        }
        Question::Intervene(work) => {
            write_field(&mut text, "asked by", &asker(question));
            write_work(&mut text, work);
        }
    }
    for (name, value) in &question.request().further {
        write_further(&mut text, name, value);
    }
    text
}

/// Writes a field that the request of a tool has besides. The tool chose its name.
fn write_further(text: &mut String, name: &str, value: &Value) {
    let value = match value {
        Value::String(value) => screenshot(value),
        other => rendered::json(other),
    };
    let name = escape_exact_line(name);
    write_quoted(text, "also", &format!("{name}: {value}"));
}

/// Describes the arguments of a call as an approver edited them.
pub(super) fn edited(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_field(&mut text, "edited to", &object(arguments));
    text
}

fn write_ask(text: &mut String, ask: &Ask) {
    write_quoted(text, "question", ask.question.as_str());
    if let Some(context) = &ask.context {
        write_quoted(text, "context", context);
    }
    if let Some(form) = &ask.form {
        write_form(text, form);
        return;
    }
    for option in &ask.options {
        write_quoted(text, "option", option.as_str());
    }
    if !ask.options.is_empty() {
        let allowed = if ask.free_text {
            "yes"
        } else {
            "no, choose one of the options"
        };
        write_field(text, "free text", allowed);
    }
}

fn write_form(text: &mut String, form: &FormRequest) {
    if let Some(url) = &form.url {
        write_quoted(text, "open", url);
    }
    for field in form.fields() {
        let optional = match field.is_required() {
            true => "",
            false => ", optional",
        };
        let description = field.description.as_deref().unwrap_or_default();
        // The server chose the name. In the name column it could pass for a field of Windlass.
        let name = escape_exact_line(&field.name);
        let line = format!("{name}: {}{optional} {description}", field.ty);
        write_quoted(text, "field", line.trim_end());
    }
}

/// The most characters of a screenshot that are shown. A longer one is an image, not a place.
const MAX_SCREENSHOT: usize = 500;

/// A screenshot as a terminal can show it: where it is, or how large it is.
fn screenshot(text: &str) -> String {
    match text.len() {
        0..=MAX_SCREENSHOT => text.to_owned(),
        bytes => format!("an image of {bytes} bytes; `--json` has it"),
    }
}

fn write_work(text: &mut String, work: &Intervene) {
    write_quoted(text, "to be done", work.message.as_str());
    let kind = json!(work.intervention_type);
    write_field(text, "kind", kind.as_str().unwrap_or_default());
    write_quoted(text, "at", work.provider.as_str());
    let screenshot = work.screenshot.as_deref().map(screenshot);
    let places = [
        ("url", &work.url),
        ("log in at", &work.oauth_url),
        ("screenshot", &screenshot),
    ];
    for (name, place) in places {
        if let Some(place) = place {
            write_quoted(text, name, place);
        }
    }
    if let Some(details) = &work.details {
        write_field(text, "details", &rendered::json(details));
    }
}

/// Writes a name and a text of a model, tool or server.
fn write_quoted(text: &mut String, name: &str, value: &str) {
    let value = escape_exact(value);
    let margin = " ".repeat(MARGIN + 2);
    let quoted = Quote::of(&value).block(&margin);
    let _ = writeln!(text, "  {name:<MARGIN$}{}", quoted.trim_start());
}

/// Who asks a question.
fn asker(question: &Approval) -> String {
    question.asker().unwrap_or_else(|| "Windlass".to_owned())
}

/// Writes a name and its value. Further lines of the value are indented.
fn write_field(text: &mut String, name: &str, value: &str) {
    let value = escape_indented(value, &" ".repeat(MARGIN + 2));
    let _ = writeln!(text, "  {name:<MARGIN$}{value}");
}

fn object(arguments: &Map<String, Value>) -> String {
    rendered::json(&Value::Object(arguments.clone()))
}

fn status(question: &Approval) -> String {
    match question.still_needed() {
        0 => match question.settled_at() {
            Some(at) => format!("{} at {at}", question.status()),
            None => question.status().to_string(),
        },
        1 if !question.decisions().is_empty() => {
            "pending: needs a second, different approver".to_owned()
        }
        1 => "pending".to_owned(),
        count => format!("pending: needs {count} different approvers"),
    }
}

/// The risk with its source, if that is known.
fn risk(asked: &str, assessment: Option<&Assessment>) -> String {
    let Some(assessment) = assessment.filter(|found| found.level.as_str() == asked) else {
        return asked.to_owned();
    };
    let mut text = format!("{asked}, by {}", assessment.source);
    for evidence in &assessment.evidence {
        let _ = write!(
            text,
            "\n{}: {}, {}",
            evidence.source, evidence.level, evidence.what
        );
    }
    text
}

fn describe_level(level: SecurityLevel) -> String {
    let what = match level {
        SecurityLevel::Low | SecurityLevel::Medium => "one approver",
        SecurityLevel::High => "one approver, who types the tool's name",
        SecurityLevel::Critical => "two different approvers, who type the tool's name",
    };
    format!("{level}: {what}")
}

/// How many members of a group have to agree, and who else may.
fn group_quorum(group: &GroupQuorum) -> String {
    let names = |members: &[Principal]| -> String {
        let names: Vec<&str> = members.iter().map(Principal::as_str).collect();
        names.join(", ")
    };
    let mut text = format!(
        "{} of {} ({})",
        group.count,
        group.group,
        names(&group.members)
    );
    if let Some(Escalation { group, members, at }) = &group.escalation {
        let _ = write!(text, "\nfrom {at} on also {group} ({})", names(members));
    }
    text
}

/// How an approver was authenticated.
fn authentication(attestation: &Attestation) -> String {
    let Attestation {
        signer,
        means,
        on_behalf_of,
    } = attestation;
    let signer = match signer {
        Signer::Approver => "signed with their key",
        Signer::Server => "attested by the server",
    };
    let means = match means {
        DecisionMeans::Terminal => "at a terminal",
        DecisionMeans::Digest => "by digest",
        DecisionMeans::Command => "by command",
        DecisionMeans::Unattended => "unattended",
        DecisionMeans::OwnCall => "as their own call",
        DecisionMeans::Page => "on a page",
        DecisionMeans::Token => "with a token",
        DecisionMeans::Slack => "in Slack",
    };
    match on_behalf_of {
        Some(other) => format!("for {other}, {signer}, {means}"),
        None => format!("{signer}, {means}"),
    }
}

fn credential_use(credentials: &CredentialUse) -> String {
    let mut credentials = credentials.clone();
    credentials.screenshot = credentials.screenshot.as_deref().map(screenshot);
    match serde_json::to_value(&credentials) {
        Ok(value) => rendered::json(&value),
        Err(error) => error.to_string(),
    }
}

pub(super) fn decision(decided: &Decided) -> String {
    let Decided {
        by,
        at,
        digest,
        decision,
        ..
    } = decided;
    let what = match decision {
        PersonDecision::Approve => format!("approved {digest}"),
        PersonDecision::ApproveEdited { arguments } => {
            format!(
                "approved with edited arguments, {digest}\n{}",
                object(arguments)
            )
        }
        PersonDecision::Reject { message: None } => "rejected".to_owned(),
        PersonDecision::Reject {
            message: Some(message),
        } => format!("rejected: {message}"),
        PersonDecision::Respond { value } => {
            format!(
                "supplied a result instead of the tool\n{}",
                rendered::json(value)
            )
        }
        PersonDecision::Answer { text } => format!("answered: {text}"),
        PersonDecision::Done { note: None } => "marked as done".to_owned(),
        PersonDecision::Done { note: Some(note) } => format!("marked as done: {note}"),
    };
    format!("by {by} at {at}: {what}")
}

/// The commands that decide about a question.
pub(super) fn commands(question: &Approval) -> Vec<String> {
    if question.status() != ApprovalStatus::Pending {
        return Vec::new();
    }
    let id = question.call();
    let reject = format!("approvals reject {id} --message TEXT");
    match question.question() {
        Question::Authorize(_) => vec![
            format!("approvals approve {id} --digest {}", question.digest()),
            reject,
            format!("approvals respond {id} VALUE"),
        ],
        Question::Ask(ask) => {
            let answer = match &ask.form {
                None => "ANSWER".to_owned(),
                Some(form) => quoted(&example(form)),
            };
            vec![format!("approvals respond {id} {answer}"), reject]
        }
        Question::Intervene(_) => vec![format!("approvals respond {id} [NOTE]"), reject],
    }
}

/// Quotes a value for a shell, because a server chose the names in it and users paste the command.
fn quoted(value: &Value) -> String {
    format!("'{}'", value.to_string().replace('\'', "'\\''"))
}

/// An example of a filled form.
fn example(form: &FormRequest) -> Value {
    let fields = form.fields().into_iter().filter(Field::is_required);
    let entries = fields.map(|field| {
        let value = match &field.ty {
            Type::Integer | Type::Number => json!(1),
            Type::Boolean => json!(true),
            Type::Enum(options) => json!(options.first()),
            _ => json!("..."),
        };
        (field.name, value)
    });
    Value::Object(entries.collect())
}
