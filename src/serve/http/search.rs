//! Search, prompts, embeddings and hints; the loop of the source document's agents, which records failures and
//! successes; and the operations of agents as tools.
//!
//! Sessions belong to a user: two users with the same session name have two sessions.

use axum::extract::Request;
use memctl_search::{Fusion, Rrf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_service::Service as _;

use crate::lessons::HintOptions;
use crate::model::error::UserError;
use crate::model::{Kind, MemoryType};
use crate::notes::FindOptions;
use crate::notes::indexing::Filter;
use crate::serve::arguments::{
    HINTS, HINTS_OF_RECORDED, LONGEST_NAME, LONGEST_QUERY, LONGEST_TEXT, RESULTS, SESSION, text,
};
use crate::serve::mcp::{Server, service};
use crate::serve::operations::{Operation, hint_service};
use crate::store::project::project_named;
use crate::store::workspace::Workspace;
use crate::{notes, skills, store};

use super::input::{Answer, Body, Names, reply, skill};
use super::problem::Problem;
use super::route;
use super::state::{Call, LONGEST_BODY, Use};

/// Maximum number of texts in one embeddings request.
const TEXTS: usize = 64;
/// Dimensions that vectors are padded to with zeros, as in the source documents' tables.
const DIMENSIONS: usize = 1_536;

/// Search request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchBody {
    /// Search query.
    #[serde(alias = "q")]
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// Maximum number of results, 1 to 50; default 5.
    #[schemars(range(min = RESULTS.least, max = RESULTS.most))]
    limit: Option<i64>,
    /// Only records of this kind.
    kind: Option<Kind>,
    /// Only records of this skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: Option<String>,
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
    /// Method that combines the keyword and the semantic ranking.
    fusion: Option<FusionName>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FusionName {
    Default,
    Rrf,
    Keyword,
    Semantic,
}

/// `POST /v1/search`, and `GET /v1/search` with parameters.
pub(crate) async fn search(call: Call, body: SearchBody) -> Answer {
    let query = text("query", body.query, LONGEST_QUERY)?;
    let options = FindOptions {
        filter: Filter {
            kind: body.kind,
            skill: body.skill.as_deref().map(skill).transpose()?,
            memory_type: body.memory_type,
            ..Filter::default()
        },
        fusion: match body.fusion {
            None | Some(FusionName::Default) => Fusion::Coverage,
            Some(FusionName::Rrf) => Fusion::Rrf(Rrf::default()),
            Some(FusionName::Keyword) => Fusion::Keyword,
            Some(FusionName::Semantic) => Fusion::Semantic,
        },
        ..FindOptions::new(query, RESULTS.check("limit", body.limit)?)
    };
    let work = call.work(Use::Any, "serve search", async move |workspace| {
        Ok(notes::find(workspace, &options, &mut |_, _| {})?)
    });
    reply(&work.await?)
}

/// `GET /v1/prompt/{domain}/{skill}`
pub(crate) async fn prompt(call: Call, Names((domain, name)): Names<(String, String)>) -> Answer {
    let skill = skill(&format!("{domain}/{name}"))?;
    let work = call.work(Use::Any, "serve prompt", async move |workspace| {
        Ok(skills::prompt(workspace, &skill, None)?)
    });
    reply(&work.await?)
}

/// Texts to embed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EmbeddingsBody {
    /// One text, or up to 64.
    input: Input,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Input {
    One(String),
    Many(Vec<String>),
}

/// Vectors, in the order of the texts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Embeddings {
    object: &'static str,
    model: String,
    data: Vec<Vector>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Vector {
    object: &'static str,
    index: usize,
    embedding: Vec<f32>,
}

/// `POST /v1/embeddings`: in the format of `OpenAI`, so that clients with their own vectors can use
/// this memory's embedder.
pub(crate) async fn embeddings(call: Call, Body(body): Body<EmbeddingsBody>) -> Answer {
    let texts = match body.input {
        Input::One(one) => vec![one],
        Input::Many(many) => many,
    };
    if texts.is_empty() || texts.len() > TEXTS {
        let message = format!("`input` has {} texts", texts.len());
        return Err(Problem::unfit(message, format!("give 1 to {TEXTS}")));
    }
    let texts = texts.into_iter();
    let texts = texts.map(|one| text("input", one, LONGEST_QUERY));
    let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
    let work = call.work(Use::Any, "serve embeddings", async move |workspace| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(notes::embed(workspace, &texts)?)
    });
    let embedded = work.await?;
    let vectors = embedded.vectors.into_iter().enumerate();
    let data = vectors.map(|(index, mut embedding)| {
        embedding.resize(embedding.len().max(DIMENSIONS), 0.0);
        Vector {
            object: "embedding",
            index,
            embedding,
        }
    });
    reply(&Embeddings {
        object: "list",
        model: embedded.model,
        data: data.collect(),
    })
}

/// `POST /mcp`: tools for agent hosts that speak the Model Context Protocol to a URL. The token, the
/// host name and the origin are checked before a request gets here. There are no sessions, so that
/// there is no GET and no DELETE.
pub(crate) async fn mcp(call: Call, request: Request) -> Answer {
    let _slot = call.slot().await?;
    let open = move |operation: Operation| {
        let why = format!("serve mcp {}", operation.name());
        call.caught_up(&why).map_err(UserError::from)
    };
    let server = Server::new(open, false, None);
    match service(LONGEST_BODY, server).call(request).await {
        // The SDK says in plain text what is no message.
        Ok(response) => Ok(response.map(axum::body::Body::new)),
        Err(never) => match never {},
    }
}

/// Request for hints.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HintBody {
    /// Output of the failing call.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// Command or code that failed.
    command: Option<String>,
    /// Tool that failed, by its name in the agent host.
    tool: Option<String>,
    /// Project of the call, by the name or path of its directory. Lessons of one project are returned
    /// only there.
    project: Option<String>,
    /// Session that records the failure, and does not repeat ignored hints.
    session: Option<String>,
    /// Maximum number of hints, 1 to 20; default 3.
    #[schemars(range(min = HINTS.least, max = HINTS.most))]
    max_hints: Option<i64>,
}

/// `POST /v1/hints`
pub(crate) async fn hint(call: Call, Body(body): Body<HintBody>) -> Answer {
    let project = body.project.as_deref().and_then(project_named);
    let options = HintOptions {
        error: text("error", body.error, LONGEST_TEXT)?,
        tool: body.tool,
        command: body.command,
        session: body.session.map(|name| own(&call, &name)).transpose()?,
        max_hints: HINTS.check("max_hints", body.max_hints)?,
    };
    let work = call.work(Use::Any, "serve hints", async move |workspace| {
        Ok(hint_service(workspace, project.as_deref()).hint(&options)?)
    });
    reply(&work.await?)
}

/// Code that failed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailureBody {
    /// Code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// Error output.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// Project of the call, by the name or path of its directory.
    project: Option<String>,
    /// Session; default `default`.
    session: Option<String>,
    /// Maximum number of hints, 1 to 20; default 5.
    #[schemars(range(min = HINTS_OF_RECORDED.least, max = HINTS_OF_RECORDED.most))]
    max_hints: Option<i64>,
}

/// `POST /v1/failures`
pub(crate) async fn failure(call: Call, Body(body): Body<FailureBody>) -> Answer {
    let project = body.project.as_deref().and_then(project_named);
    let failure = HintOptions {
        error: text("error", body.error, LONGEST_TEXT)?,
        command: Some(text("code", body.code, LONGEST_TEXT)?),
        session: Some(own(&call, body.session.as_deref().unwrap_or(SESSION))?),
        max_hints: HINTS_OF_RECORDED.check("max_hints", body.max_hints)?,
        ..HintOptions::default()
    };
    let work = call.work(Use::Any, "serve failures", async move |workspace| {
        may_learn(workspace)?;
        Ok(hint_service(workspace, project.as_deref()).record_failure(&failure)?)
    });
    reply(&work.await?)
}

/// Code that works.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuccessBody {
    /// Code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// Output of the code.
    output: String,
    /// Session; default `default`.
    session: Option<String>,
}

/// `POST /v1/successes`
pub(crate) async fn success(call: Call, Body(body): Body<SuccessBody>) -> Answer {
    if body.output.len() > LONGEST_TEXT {
        return Err(Problem::unfit("`output` is too long", "send its end"));
    }
    let session = own(&call, body.session.as_deref().unwrap_or(SESSION))?;
    let code = text("code", body.code, LONGEST_TEXT)?;
    let work = call.work(Use::Any, "serve successes", async move |workspace| {
        may_learn(workspace)?;
        Ok(hint_service(workspace, None).record_success(&session, &code, &body.output)?)
    });
    reply(&work.await?)
}

/// Checks that the caller may add patterns. They belong to no domain, so only a scope that can see
/// them can add them.
fn may_learn(workspace: &Workspace) -> Result<(), Problem> {
    if workspace.store.scope().allows(None) {
        return Ok(());
    }
    Err(store::Error::OutOfScope("procedures".to_owned()).into())
}

/// Name of a session of the caller.
fn own(call: &Call, name: &str) -> Result<String, Problem> {
    let name = text("session", name.to_owned(), LONGEST_NAME)?;
    Ok(format!("{}/{name}", call.caller.user))
}
