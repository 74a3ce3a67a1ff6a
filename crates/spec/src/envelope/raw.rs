//! The envelope as JSON: writing it, and strict reading of canonical JSON. JSON that is not canonical is
//! an error with the name of the field; the lenient reader is in `normalise`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::Object;
use super::action::Action;
use super::answer::Answer;
use super::error::{EnvelopeError, EnvelopeProblem};
use super::fields::Fields;
use super::forms::{Batch, Nested, Page, SuccessData};
use super::human::{AskHuman, AuthorizationRequest, CredentialAuthorization, Intervention};
use super::plan::{PlanReport, WorkData};
use super::response::ToolResponse;
use super::words::{HilAction, InterventionStatus, ToolStatus, WorkStatus};
use crate::failure::{Effect, ErrorCategory, Failure};
use crate::money::Money;
use crate::names::NonEmptyText;
use crate::time::Timestamp;

/// The envelope in the order in which its fields are written.
#[derive(Serialize)]
struct JsonEnvelope<'a> {
    status: ToolStatus,
    action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hil_required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    data: JsonData<'a>,
    #[serde(flatten)]
    failure: Option<JsonFailure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<String>,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct JsonFailure<'a> {
    error: &'a str,
    category: ErrorCategory,
    retryable: bool,
    effect: Effect,
    model_message: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JsonData<'a> {
    Plain(&'a Value),
    Typed {
        #[serde(flatten)]
        form: Form<'a>,
        #[serde(flatten)]
        extra: &'a Object,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Form<'a> {
    Page(&'a Page),
    Nested(&'a Nested),
    Batch(&'a Batch),
    Failed(&'a Object),
    AskHuman(&'a AskHuman),
    Authorization(&'a AuthorizationRequest),
    Credential(&'a CredentialAuthorization),
    Intervention(&'a Intervention),
    Plan(&'a PlanReport),
    Work(&'a WorkData),
}

impl Serialize for ToolResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = match form(self.answer()) {
            Ok(form) => JsonData::Typed {
                form,
                extra: self.extra(),
            },
            Err(value) => JsonData::Plain(value),
        };
        let message = self.message();
        let written = JsonEnvelope {
            status: self.status(),
            action: self.action(),
            hil_required: message.map(|_| true),
            message,
            data,
            failure: self.failure().map(|failure| JsonFailure {
                error: &failure.operator_message,
                category: failure.category,
                retryable: failure.retryable,
                effect: failure.effect,
                model_message: &failure.model_message,
            }),
            cost_usd: self.cost().map(Money::to_decimal),
            timestamp: self.timestamp(),
        };
        written.serialize(serializer)
    }
}

/// The content of `data`: typed fields, or any JSON.
fn form(answer: &Answer) -> Result<Form<'_>, &Value> {
    Ok(match answer {
        Answer::Success { data, .. } => match data {
            SuccessData::Plain(value) => return Err(value),
            SuccessData::Page(page) => Form::Page(page),
            SuccessData::Nested(nested) => Form::Nested(nested),
            SuccessData::Batch(batch) => Form::Batch(batch),
        },
        Answer::Error { data, .. } => Form::Failed(data),
        Answer::AskHuman(ask) => Form::AskHuman(ask),
        Answer::Authorization(request) => Form::Authorization(request),
        Answer::Credential(request) => Form::Credential(request),
        Answer::Intervention(intervention) => Form::Intervention(intervention),
        Answer::Plan { plan, .. } => Form::Plan(plan),
        Answer::Work { data, .. } => Form::Work(data),
    })
}

impl<'de> Deserialize<'de> for ToolResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Reads canonical JSON.
pub(super) fn read(json: Value) -> Result<ToolResponse, EnvelopeError> {
    let mut top = Fields::of("", json)?;
    let status: ToolStatus = top.word("status")?;
    let (answer, extra) = match status {
        ToolStatus::Success => {
            let (action, data) = (top.parsed("action", Action::new)?, top.value("data")?);
            let data = SuccessData::Plain(data);
            (Answer::Success { action, data }, Object::new())
        }
        ToolStatus::Error => read_error(&mut top)?,
        ToolStatus::Pending => read_work(&mut top, WorkStatus::Pending)?,
        ToolStatus::InProgress => read_work(&mut top, WorkStatus::InProgress)?,
        ToolStatus::Created => read_work(&mut top, WorkStatus::Created)?,
        ToolStatus::HumanInputRequested => {
            let (message, mut data) = read_hil(&mut top, HilAction::AskHuman)?;
            let ask = AskHuman::read(&mut data, message)?;
            (Answer::AskHuman(ask), data.rest())
        }
        ToolStatus::AuthorizationRequested => {
            let (message, mut data) = read_hil(&mut top, HilAction::RequestAuthorization)?;
            let request = AuthorizationRequest::read(&mut data, message)?;
            (Answer::Authorization(request), data.rest())
        }
        ToolStatus::AuthorizationRequired => {
            let (message, data) = read_hil(&mut top, HilAction::RequestAuthorization)?;
            read_authorization_required(data, message)?
        }
        ToolStatus::CredentialRequired => {
            read_intervention(&mut top, InterventionStatus::CredentialRequired)?
        }
        ToolStatus::HumanRequired => {
            read_intervention(&mut top, InterventionStatus::HumanRequired)?
        }
    };
    let cost = top.optional_text("cost_usd")?;
    let cost = cost.map(|cost| cost.parse::<Money>()).transpose();
    let cost = cost.map_err(|error| top.error("cost_usd", EnvelopeProblem::Cost(error)))?;
    let timestamp = top.time("timestamp")?;
    top.finish()?;
    let response = ToolResponse::read(answer, extra, timestamp);
    Ok(match cost {
        Some(cost) => response.with_cost(cost),
        None => response,
    })
}

fn read_error(top: &mut Fields) -> Result<(Answer, Object), EnvelopeError> {
    let action = top.parsed("action", Action::new)?;
    let operator_message = String::from(top.text("error")?);
    let (category, retryable) = (top.word("category")?, top.flag("retryable")?);
    let effect = top.word("effect")?;
    // The model does not get a message that was not written for it.
    let failure = Failure {
        retryable,
        ..Failure::foreign(category, effect, operator_message)
    };
    let failure = match top.optional_text("model_message")? {
        Some(model_message) => Failure {
            model_message,
            ..failure
        },
        None => failure,
    };
    let data = top.object("data")?;
    let answer = Answer::Error {
        action,
        failure,
        data,
    };
    Ok((answer, Object::new()))
}

fn read_work(top: &mut Fields, status: WorkStatus) -> Result<(Answer, Object), EnvelopeError> {
    let action = top.parsed("action", Action::new)?;
    let object = top.object("data")?;
    if !object.contains_key(PlanReport::MARK) {
        let data = WorkData::new(object)?;
        let answer = Answer::Work {
            action,
            status,
            data,
        };
        return Ok((answer, Object::new()));
    }
    let mut data = Fields::new("/data", object);
    let plan = PlanReport::read(&mut data)?;
    let answer = Answer::Plan {
        action,
        status,
        plan,
    };
    Ok((answer, data.rest()))
}

/// Reads the common fields of all answers that wait for a person.
fn read_hil(
    top: &mut Fields,
    expected: HilAction,
) -> Result<(NonEmptyText, Fields), EnvelopeError> {
    if top.text("action")?.as_str() != expected.as_str() {
        return Err(top.error("action", EnvelopeProblem::Fixed(expected.as_str())));
    }
    if !top.flag("hil_required")? {
        return Err(top.error("hil_required", EnvelopeProblem::Fixed("true")));
    }
    let message = top.text("message")?;
    let mut data = Fields::of("/data", top.value("data")?)?;
    // Under the older name it would be an unknown field, and the person would not see it.
    if data.optional("instructions").is_some() {
        return Err(data.error("instructions", EnvelopeProblem::Renamed("instruction")));
    }
    Ok((message, data))
}

fn read_authorization_required(
    mut data: Fields,
    message: NonEmptyText,
) -> Result<(Answer, Object), EnvelopeError> {
    if is_complete_request(&data) {
        let request = AuthorizationRequest::read(&mut data, message)?;
        return Ok((Answer::Authorization(request), data.rest()));
    }
    let request = CredentialAuthorization::read(&mut data, message)?;
    Ok((Answer::Credential(request), data.rest()))
}

/// Whether `authorization_required` is only another name for `authorization_requested` here: the data
/// has all fields of such a request and none about credentials.
fn is_complete_request(data: &Fields) -> bool {
    let mut marks = CredentialAuthorization::MARKS.iter();
    let mut required = AuthorizationRequest::REQUIRED.iter();
    !marks.any(|name| data.has(name)) && required.all(|name| data.has(name))
}

fn read_intervention(
    top: &mut Fields,
    status: InterventionStatus,
) -> Result<(Answer, Object), EnvelopeError> {
    let (message, mut data) = read_hil(top, HilAction::AskHuman)?;
    let intervention = Intervention::read(&mut data, status, message)?;
    Ok((Answer::Intervention(intervention), data.rest()))
}
