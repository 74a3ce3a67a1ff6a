//! The short API: an agent file, a library and a task give an answer.

use std::path::Path;
use std::sync::Arc;

use windlass_spec::{AgentFile, AgentName, ErrorCategory, RunId};
use windlass_tools::ToolLibrary;

use crate::choice::NoModel;
use crate::crew::CrewError;
use crate::driver::DriveError;
use crate::durable::DurableError;
use crate::work::Work;

/// An agent read from a file, ready to be given tasks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use windlass::{Agent, Message, ReflexModel, builtin_library};
///
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.gram");
/// let agent = Agent::from_file(file)?;
/// let library = builtin_library("hello").ok_or("there is no such library")?;
/// let done = agent
///     .run_with(&library, "Greet Ada.")
///     .model(ReflexModel::new())
///     .after([Message::user("Hi!"), Message::assistant("Hello. Whom shall I greet?")])
///     .max_iterations(4)
///     .await?;
/// assert_eq!(done.answer(), "Hello, Ada! Nice to meet you.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Agent {
    file: Arc<AgentFile>,
    name: AgentName,
}

/// Why an agent cannot be loaded or could not do its task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("the file `{path}` cannot be read: {error}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The agent file has mistakes.
    #[error("the agent file has mistakes\n{}", .0.join("\n"))]
    Text(Vec<String>),
    /// The file has no such agent, or has several and none was named.
    #[error("{0}")]
    WhichAgent(String),
    /// The task is invalid.
    #[error("{0}")]
    Task(String),
    /// The agent's crew cannot be assembled.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// Its model cannot be used.
    #[error(transparent)]
    Model(#[from] NoModel),
    /// The journal cannot be opened.
    #[error(transparent)]
    Store(#[from] DurableError),
    /// The run could not be continued; its journal is unchanged.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The run failed.
    #[error("{message} ({})", category.guidance())]
    Failed {
        /// The run, for its trace.
        run: RunId,
        /// What kind of failure it was.
        category: ErrorCategory,
        /// What happened.
        message: String,
    },
}

impl Agent {
    /// The top-level agent that a file declares, as gram text or JSON.
    ///
    /// # Errors
    /// If the file cannot be read, has mistakes, or declares several top-level agents. Then use
    /// [`Agent::named_in_file`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_text(&read_text(path.as_ref())?)
    }

    /// The agent of that name in a file.
    ///
    /// # Errors
    /// If the file cannot be read, has mistakes, or does not declare the agent.
    pub fn named_in_file(name: &str, path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = parse(&read_text(path.as_ref())?)?;
        let agent = file.agent(name).map(|agent| agent.name().clone());
        let name = agent.ok_or_else(|| {
            Error::WhichAgent(format!(
                "there is no agent `{name}`; the file declares: {}",
                names(&file)
            ))
        })?;
        let file = Arc::new(file);
        Ok(Self { file, name })
    }

    /// The agent that a text declares, as gram text or JSON.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = r#"{"name": "poet", "model": "OpenAI/gpt-4o-mini", "instruction": "Write a poem."}"#;
    /// let agent = windlass::Agent::from_text(text)?;
    /// assert_eq!(agent.declaration().name().as_str(), "poet");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the text has mistakes or declares several agents.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let file = parse(text)?;
        let mut roots = file.roots().map(|agent| agent.name().clone());
        let name = match (roots.next(), roots.next()) {
            (Some(only), None) => only,
            (None, _) => {
                return Err(Error::WhichAgent(
                    "the file declares no top-level agent".to_owned(),
                ));
            }
            (Some(_), Some(_)) => {
                let message = format!(
                    "the file declares several agents; name one of: {}",
                    names(&file)
                );
                return Err(Error::WhichAgent(message));
            }
        };
        drop(roots);
        let file = Arc::new(file);
        Ok(Self { file, name })
    }

    /// An agent that is declared in code, with the other agents that it may delegate to.
    ///
    /// ```
    /// use windlass::{Agent, NonEmptyText, Signature, ToolName, ToolSpecification, spec};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greet = ToolSpecification::new(
    ///     ToolName::new("sayHello")?,
    ///     NonEmptyText::new("Returns a friendly greeting message for the given name")?,
    ///     Signature::parse("(name: Text) --> IO Text").map_err(|_| "a wrong signature")?,
    /// );
    /// let declaration = spec::Agent::new(
    ///     spec::AgentName::new("hello_world_agent")?,
    ///     "OpenAI/gpt-3.5-turbo".parse()?,
    ///     NonEmptyText::new("Have friendly conversations with the user.")?,
    /// );
    /// let agent = Agent::declared(declaration.with_tool(greet)?, [])?;
    /// assert_eq!(agent.declaration().tools().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the agents do not fit together, as in a file.
    pub fn declared(
        agent: windlass_spec::Agent,
        others: impl IntoIterator<Item = windlass_spec::Agent>,
    ) -> Result<Self, Error> {
        let name = agent.name().clone();
        let agents = [agent].into_iter().chain(others).collect();
        let file = AgentFile::of_agents(agents).map_err(Error::Text)?;
        let file = Arc::new(file);
        Ok(Self { file, name })
    }

    /// Its declaration.
    #[must_use]
    pub fn declaration(&self) -> &windlass_spec::Agent {
        // The name is that of an agent of the file, from the constructors above.
        self.file
            .agent(self.name.as_str())
            .unwrap_or(&self.file.agents()[0])
    }

    /// Its file.
    #[must_use]
    pub fn file(&self) -> &AgentFile {
        &self.file
    }

    /// Gives it a task, with implementations of its tools from `library`. Nothing happens until the
    /// work is awaited or streamed.
    pub fn run_with(&self, library: &ToolLibrary, task: impl Into<String>) -> Work {
        Work::new(self.clone(), library.clone(), task.into())
    }
}

fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::File {
        path: path.display().to_string(),
        error,
    })
}

fn parse(text: &str) -> Result<AgentFile, Error> {
    let reading = windlass_spec::read(text);
    reading.file.ok_or_else(|| {
        let mistakes = reading.diagnostics.iter();
        let mistakes = mistakes.filter(|diagnostic| diagnostic.is_error());
        let lines = mistakes.map(|diagnostic| {
            let before = &text.as_bytes()[..diagnostic.span.start as usize];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line}: {}", diagnostic.message)
        });
        Error::Text(lines.collect())
    })
}

fn names(file: &AgentFile) -> String {
    let names: Vec<&str> = file
        .agents()
        .iter()
        .map(|agent| agent.name().as_str())
        .collect();
    names.join(", ")
}
