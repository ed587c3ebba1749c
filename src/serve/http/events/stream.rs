//! Event stream of one client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse as _;
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::serve::http::problem::Problem;
use crate::serve::http::state::Server;
use crate::serve::token::Caller;

use super::limits::{StreamPermit, StreamRefusal};
use super::{Batch, Listening};

/// Interval of keep-alive messages on a silent stream.
const ALIVE: Duration = Duration::from_secs(15);

/// Client with its pending events.
struct Client {
    server: Server,
    caller: Caller,
    listening: Listening,
    /// Events to send before any change.
    greeting: VecDeque<Event>,
    /// Batch that is being sent, and the number of its changes already processed.
    batch: Option<(Arc<Batch>, usize)>,
    stopping: watch::Receiver<bool>,
    until: Instant,
    _permit: StreamPermit,
}

/// `GET /v1/events`
pub(in super::super) async fn events(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if crate::store::is_disabled(server.store(&caller).directory()) {
        return Err(Problem::disabled());
    }
    server.store(&caller).must_be_enabled()?;
    let permit = match server.events().limits.take(caller.user.as_str()) {
        Ok(permit) => permit,
        Err(StreamRefusal::Full) => {
            return Err(Problem::busy("too many clients are connected", 10));
        }
        Err(StreamRefusal::Share(share)) => return Err(Problem::too_many_streams(share)),
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let listening = server.events().hub.subscribe(last);
    // A stream ends with its token.
    let left = (caller.until - server.now()).to_std().unwrap_or_default();
    let mut client = Client {
        stopping: server.stopping(),
        until: Instant::now() + left.min(Duration::from_hours(24 * 30)),
        server,
        caller,
        listening,
        greeting: VecDeque::new(),
        batch: None,
        _permit: permit,
    };
    client
        .greeting
        .push_back(Event::default().retry(Duration::from_secs(2)));
    if client.listening.has_missed {
        let hint = json!({ "hint": "reload the data: some changes in between were dropped" });
        let event = Event::default().event("missed").data(hint.to_string());
        client.greeting.push_back(event);
    }
    let stream = stream::unfold(client, |mut client| async {
        let event = client.next().await?;
        Some((Ok::<_, Infallible>(event), client))
    });
    let alive = KeepAlive::new().interval(ALIVE).text("alive");
    let mut response = Sse::new(stream).keep_alive(alive).into_response();
    // Tells proxies not to buffer the stream.
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Client {
    /// Returns the next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let event = self.greeting.pop_front().or_else(|| self.of_batch());
            if event.is_some() {
                return event;
            }
            let batch = match self.listening.replay.pop_front() {
                Some(batch) => batch,
                None => self.wait().await?,
            };
            self.batch = Some((batch, 0));
        }
    }

    async fn wait(&mut self) -> Option<Arc<Batch>> {
        tokio::select! {
            // None for a client that is too far behind, or a server that is gone.
            batch = self.listening.receiver.recv() => batch.ok(),
            _ = self.stopping.wait_for(|stopping| *stopping) => None,
            () = tokio::time::sleep_until(self.until) => None,
        }
    }

    /// Returns the next event of the current batch that this client may see.
    fn of_batch(&mut self) -> Option<Event> {
        let (batch, sent) = self.batch.take()?;
        let store = self.server.store(&self.caller);
        for (at, (name, change)) in batch.changes.iter().enumerate().skip(sent) {
            let number = batch.first + at as u64;
            if number > self.listening.after && store.admits(&change.entry) {
                let event = Event::default().event("memory_updated").id(name);
                let event = event.data(change.data().to_string());
                self.batch = Some((batch, at + 1));
                return Some(event);
            }
        }
        None
    }
}
