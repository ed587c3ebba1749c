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
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::serve::http::problem::Problem;
use crate::serve::http::shares::{Place, Taken};
use crate::serve::http::state::Server;
use crate::serve::token::Caller;

use super::change_feed::Change;

/// Interval of keep-alive messages on a silent stream.
const ALIVE: Duration = Duration::from_secs(15);

/// Client with its pending events.
struct Client {
    server: Server,
    caller: Caller,
    changes: broadcast::Receiver<Arc<Vec<Change>>>,
    /// Events to send before any change.
    greeting: VecDeque<Event>,
    /// Changes that are being sent, and the number of those already processed.
    batch: (Arc<Vec<Change>>, usize),
    stopping: watch::Receiver<bool>,
    until: Instant,
    _place: Place,
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
    let place = match server.events().limits.free_place(caller.user.as_str()) {
        Ok(place) => place,
        Err(Taken::All) => return Err(Problem::busy("too many clients are connected", 10)),
        Err(Taken::Share(share)) => return Err(Problem::too_many_streams(share)),
    };
    let changes = server.events().sender.subscribe();
    // A stream ends with its token.
    let left = (caller.until - server.now()).to_std().unwrap_or_default();
    let mut client = Client {
        stopping: server.stopping(),
        until: Instant::now() + left.min(Duration::from_hours(24 * 30)),
        server,
        caller,
        changes,
        greeting: VecDeque::from([Event::default().retry(Duration::from_secs(2))]),
        batch: (Arc::default(), 0),
        _place: place,
    };
    if headers.contains_key("last-event-id") {
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
            self.batch = (self.wait().await?, 0);
        }
    }

    async fn wait(&mut self) -> Option<Arc<Vec<Change>>> {
        tokio::select! {
            // None for a client that is too far behind, or a server that is gone.
            changes = self.changes.recv() => changes.ok(),
            _ = self.stopping.wait_for(|stopping| *stopping) => None,
            () = tokio::time::sleep_until(self.until) => None,
        }
    }

    /// Returns the next event of the current batch that this client may see.
    fn of_batch(&mut self) -> Option<Event> {
        let store = self.server.store(&self.caller);
        let (changes, sent) = &mut self.batch;
        while let Some(change) = changes.get(*sent) {
            *sent += 1;
            if store.admits(&change.entry) {
                let event = Event::default()
                    .event("memory_updated")
                    .id(self.server.random());
                return Some(event.data(change.data().to_string()));
            }
        }
        None
    }
}
