//! Search, prompts and embeddings; and the operations of agents as tools.

use axum::extract::Request;
use memctl_search::{Fusion, Rrf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_service::Service as _;

use crate::model::error::UserError;
use crate::model::{Kind, MemoryType};
use crate::notes::FindOptions;
use crate::notes::indexing::Filter;
use crate::serve::arguments::{Bounds, LONGEST_QUERY, RESULTS, text};
use crate::serve::http::input::{Answer, Body, Names, Parameters, reply};
use crate::serve::http::limits::LONGEST_BODY;
use crate::serve::http::problem::Problem;
use crate::serve::http::route;
use crate::serve::http::state::{Call, Use};
use crate::serve::http::v1::skill;
use crate::serve::mcp::{Server, service};
use crate::serve::operations::Operation;
use crate::{notes, skills};

/// Maximum number of texts in one embeddings request.
const TEXTS: usize = 64;
/// Dimensions of a vector, padded with zeros; by default as in the source documents' tables.
const DIMENSIONS: Bounds = Bounds::of(1, 1_536, 4_096);

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

/// `POST /v1/search`
pub(crate) async fn search(call: Call, Body(body): Body<SearchBody>) -> Answer {
    find(call, body).await
}

/// `GET /v1/search`
pub(crate) async fn search_by_query(
    call: Call,
    Parameters(parameters): Parameters<SearchBody>,
) -> Answer {
    find(call, parameters).await
}

async fn find(call: Call, body: SearchBody) -> Answer {
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
    /// Dimension of the vectors, padded with zeros; default 1536.
    dimensions: Option<i64>,
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
    let texts: Result<Vec<String>, Problem> = texts
        .into_iter()
        .map(|one| Ok(text("input", one, LONGEST_QUERY)?))
        .collect();
    let texts = texts?;
    let filled = DIMENSIONS.check("dimensions", body.dimensions)?;
    let work = call.work(Use::Any, "serve embeddings", async move |workspace| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(notes::embed(workspace, &texts)?)
    });
    let embedded = work.await?;
    let mut data = Vec::new();
    for (index, mut vector) in embedded.vectors.into_iter().enumerate() {
        if vector.len() > filled {
            return Err(Problem::unfit(
                format!("vectors of this memory have {} dimensions", vector.len()),
                format!("give `dimensions` of {} or more", vector.len()),
            ));
        }
        vector.resize(filled, 0.0);
        data.push(Vector {
            object: "embedding",
            index,
            embedding: vector,
        });
    }
    reply(&Embeddings {
        object: "list",
        model: embedded.model,
        data,
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
