//! Asks the shared store itself: procedures by words and meaning, memories by meaning.
//!
//! What is asked are the functions of the seeds, within the rows of the user who logged in. Their two
//! answers become one as the first of them is made: by reciprocal ranks, of the words where they were looked
//! for, and of the distance over both.
//!
//! Deliberately absent: the other kinds. They have no vectors there, and are found where they were pulled.

use crate::model::{Kind, MemoryType};

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::limits;
use super::migrate;
use super::sync::as_vector;

/// How little the first ranks stand out; the seeds' number.
const RRF_K: f64 = 50.0;

/// What is looked for.
#[derive(Debug)]
pub struct RemoteQuestion<'a> {
    /// The words.
    pub text: &'a str,
    /// Their vector.
    pub vector: &'a [f32],
    /// What made it: only rows of the same are compared.
    pub embedder: &'a str,
    /// Of this kind only: procedures or memories.
    pub kind: Option<Kind>,
    /// Of this type only, of memories.
    pub memory_type: Option<MemoryType>,
    /// How many at most.
    pub limit: u32,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteHit {
    /// Procedure or memory.
    pub kind: Kind,
    /// Its id in its workspace; the row's where another program wrote it.
    pub id: String,
    /// The workspace that shares it; `None` where another program wrote it.
    pub origin: Option<String>,
    /// The record, if it is one of a workspace.
    pub entry: Option<String>,
    /// Its text.
    pub content: String,
    /// Higher is better.
    pub score: f64,
    /// Its rank by words, from 1.
    pub keyword: Option<usize>,
    /// Its rank by meaning, from 1.
    pub semantic: Option<usize>,
    /// How far its vector is from that of the question; `None` where it has none.
    pub distance: Option<f64>,
}

/// Searches the shared store, best first.
pub async fn search(
    address: &Address,
    question: &RemoteQuestion<'_>,
) -> Result<Vec<RemoteHit>, Error> {
    limits::named(address, found(address, question)).await
}

async fn found(address: &Address, question: &RemoteQuestion<'_>) -> Result<Vec<RemoteHit>, Error> {
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let failed = connection.failed("the shared store cannot be searched");
    let client = &connection.client;
    let stamp = "select set_config('memctl.embedding_model', $1, false)";
    client
        .execute(stamp, &[&question.embedder])
        .await
        .map_err(&failed)?;
    let vector = as_vector(question.vector);
    let schema = connection.vector_schema().await?;
    let limit = i32::try_from(question.limit).unwrap_or(i32::MAX);
    let mut hits = Vec::new();
    if question.kind != Some(Kind::Memory) && question.memory_type.is_none() {
        let rows = client
            .query(
                &format!(
                    "select coalesce(m.entry_id, m.id::text), m.origin, m.entry, coalesce(m.content, ''),
                            h.keyword_rank, m.embedding operator({schema}.<=>) $2::text::{schema}.vector
                     from public.hybrid_search_context_eng_memories($1, $2::text::{schema}.vector, $3) h
                     join public.context_eng_memories m on m.id = h.id"
                ),
                &[&question.text, &vector, &limit],
            )
            .await
            .map_err(&failed)?;
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
        let rows = client
            .query(
                &format!(
                    "select coalesce(m.entry_id, m.id::text), m.origin, m.entry, m.content, 1 - h.similarity
                     from public.match_memory($1::text::{schema}.vector, -1, $2, $3) with ordinality h
                       (id, content, similarity, metadata, created_at, place)
                     join public.agent_memory m on m.id = h.id
                     order by h.place"
                ),
                &[&vector, &limit, &memory_type],
            )
            .await
            .map_err(&failed)?;
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

/// The hits with their ranks by meaning and their scores, best first.
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
