//! Search of the shared store: procedures by keyword and semantic rank, memories by semantic rank.
//!
//! It calls the functions of the seeds, which see only the rows of the user who logged in. The two
//! result lists are merged by reciprocal rank fusion: over the keyword rank, if there is one, and
//! the rank by distance across both lists.
//!
//! Deliberately absent: the other kinds. They have no vectors there; a local search finds them
//! after a pull.

use tokio_postgres::types::ToSql;

use crate::model::{Kind, MemoryType};
use crate::store::OTHER_PROGRAMS;

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::migrate;
use super::sync::as_vector;

/// Constant of reciprocal rank fusion, as in the seeds.
const RRF_K: f64 = 50.0;

/// Query of the shared store.
#[derive(Debug)]
pub struct RemoteQuestion<'a> {
    /// Query text.
    pub text: &'a str,
    /// Vector of the query text.
    pub vector: &'a [f32],
    /// Embedder of the vector. Only vectors of the same embedder are compared.
    pub embedder: &'a str,
    /// Restricts the search to procedures or memories.
    pub kind: Option<Kind>,
    /// Restricts the search to memories of this type.
    pub memory_type: Option<MemoryType>,
    /// User whose memories are searched, by the name in tokens; `None` for all that the login holds.
    pub user: Option<&'a str>,
    /// Maximum number of hits.
    pub limit: u32,
}

/// One hit.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteHit {
    /// Procedure or memory.
    pub kind: Kind,
    /// Record id in its workspace; that of the pulled record if another program wrote the row.
    pub id: String,
    /// Workspace that pushed the record, or [`OTHER_PROGRAMS`].
    pub origin: Option<String>,
    /// JSON text of the record; `None` if another program wrote the row.
    pub entry: Option<String>,
    /// Text content.
    pub content: String,
    /// Fusion score; higher is better.
    pub score: f64,
    /// Keyword rank, from 1; `None` without a keyword match.
    pub keyword: Option<usize>,
    /// Semantic rank, from 1; `None` without a distance.
    pub semantic: Option<usize>,
    /// Cosine distance to the query vector; `None` without a comparable vector.
    pub distance: Option<f64>,
}

/// Searches the shared store. The best hit comes first.
pub async fn search(
    address: &Address,
    question: &RemoteQuestion<'_>,
) -> Result<Vec<RemoteHit>, Error> {
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let doing = "the shared store cannot be searched";
    let stamp = "select set_config('memctl.embedding_model', $1, false)";
    connection.run(doing, stamp, &[&question.embedder]).await?;
    let vector = as_vector(question.vector);
    let schema = connection.vector_schema().await?;
    let limit = i32::try_from(question.limit).unwrap_or(i32::MAX);
    let mut hits = Vec::new();
    if question.kind != Some(Kind::Memory) && question.memory_type.is_none() {
        let query = format!(
            "select coalesce(m.entry_id, 'PROC-' || m.id), coalesce(m.origin, '{OTHER_PROGRAMS}'), m.entry,
                    coalesce(m.content, ''),
                    h.keyword_rank, m.embedding operator({schema}.<=>) $2::text::{schema}.vector
             from public.hybrid_search_context_eng_memories($1, $2::text::{schema}.vector, $3) h
             join public.context_eng_memories m on m.id = h.id"
        );
        let parameters: [&(dyn ToSql + Sync); 3] = [&question.text, &vector, &limit];
        let rows = connection.rows(doing, &query, &parameters).await?;
        let rank = |rank: Option<i64>| rank.and_then(|rank| usize::try_from(rank).ok());
        hits.extend(rows.iter().map(|row| RemoteHit {
            kind: Kind::Procedure,
            id: row.get(0),
            origin: row.get(1),
            entry: row.get(2),
            content: row.get(3),
            score: 0.0,
            keyword: rank(row.get(4)),
            semantic: None,
            distance: row.get(5),
        }));
    }
    if question.kind != Some(Kind::Procedure) {
        let memory_type = question.memory_type.map(MemoryType::name);
        let columns = format!(
            "coalesce(m.entry_id, 'MEM-' || m.id), coalesce(m.origin, '{OTHER_PROGRAMS}'), m.entry, m.content,
             1 - h.similarity"
        );
        let own = format!(
            "select {columns}
             from public.match_memory($1::text::{schema}.vector, -1, $2, $3) h
             join public.agent_memory m on m.id = h.id"
        );
        // Memories of the users of a server are rows of these users, which the login of the server holds.
        let held = format!(
            "select {columns}
             from memctl.match_held_memory($1::text::{schema}.vector, $2, $3, $4) h
             join public.agent_memory m on m.id = h.id"
        );
        let parameters: [&(dyn ToSql + Sync); 3] = [&vector, &limit, &memory_type];
        let mut rows = connection.rows(doing, &own, &parameters).await?;
        let parameters: [&(dyn ToSql + Sync); 4] = [&vector, &limit, &memory_type, &question.user];
        rows.extend(connection.rows(doing, &held, &parameters).await?);
        hits.extend(rows.iter().map(|row| RemoteHit {
            kind: Kind::Memory,
            id: row.get(0),
            origin: row.get(1),
            entry: row.get(2),
            content: row.get(3),
            score: 0.0,
            keyword: None,
            semantic: None,
            distance: row.get(4),
        }));
    }
    let mut hits = fused(hits);
    hits.truncate(question.limit as usize);
    Ok(hits)
}

/// Assigns semantic ranks and scores, and sorts by score.
fn fused(mut hits: Vec<RemoteHit>) -> Vec<RemoteHit> {
    let far = |hit: &RemoteHit| hit.distance.unwrap_or(f64::INFINITY);
    hits.sort_by(|a, b| far(a).total_cmp(&far(b)));
    for (hit, rank) in hits.iter_mut().zip(1..) {
        hit.semantic = hit.distance.map(|_| rank);
        let ranks = [hit.keyword, hit.semantic].into_iter().flatten();
        #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
        let score = ranks.map(|rank| 1.0 / (RRF_K + rank as f64)).sum();
        hit.score = score;
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_become_one() {
        let hit = |id: &str, keyword, distance| RemoteHit {
            kind: Kind::Memory,
            id: id.to_owned(),
            origin: None,
            entry: None,
            content: String::new(),
            score: 0.0,
            keyword,
            semantic: None,
            distance,
        };
        let hits = fused(vec![
            hit("far", None, Some(0.9)),
            hit("words", Some(1), None),
            hit("both", Some(2), Some(0.2)),
            hit("near", None, Some(0.1)),
        ]);
        let ids: Vec<&str> = hits.iter().map(|hit| hit.id.as_str()).collect();
        assert_eq!(ids, ["both", "near", "words", "far"]);
        assert_eq!((hits[0].semantic, hits[2].semantic), (Some(2), None));
    }
}
