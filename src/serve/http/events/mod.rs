//! What changes, as it changes, whoever changes it: `GET /v1/events`.
//!
//! Server-sent events of one name, `memory_updated`, with what the source document's own trigger tells
//! (`user_id`, `memory_type`, `operation`) and `kind`, `id` and `skill` beside it. A client is told of
//! what its token may see, and of nothing else; it looks at the record by itself.
//!
//! - `follow`: the file system says when to look.
//! - `news`: what has changed since the last look.
//! - `seats`: how many streams there are, and how many of them one user may have.
//!
//! The ids of events are random: from numbers one could tell how much happens that one may not see.
//!
//! Who comes back with `Last-Event-ID` gets what he has missed, as far as it is still known; where it is
//! not, the event `missed` says that he has to look for himself.
//!
//! Who does not read is dropped: his connection after a while (`stall`), and he himself where he is too far
//! behind. Nothing is kept for him but what all share: an event is put into words when the socket takes it.

mod follow;
mod news;
mod seats;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse as _;
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use notify::RecommendedWatcher;
use serde_json::json;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::serve::token::Caller;
use crate::store::Scoped;

use super::problem::Problem;
use super::state::{Log, Server};

use news::News;
use seats::{NoSeat, Seat, Seats};

/// So many batches may wait for a client before it is dropped.
const WAITING: usize = 256;
/// So many pieces of news are kept for those who come back.
const KEPT: usize = 1_000;
/// How often a silent stream says that it is still there.
const ALIVE: Duration = Duration::from_secs(15);

/// The news of a memory, and who listens to it.
pub(super) struct Events {
    hub: Arc<Hub>,
    seats: Seats,
    // Dropping it ends the thread that looks.
    _watcher: RecommendedWatcher,
}

/// Where news go through.
struct Hub {
    sender: broadcast::Sender<Arc<Batch>>,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    batches: VecDeque<Arc<Batch>>,
    kept: usize,
    /// The number of the next piece of news, from 1.
    next: u64,
}

/// What one look has found.
struct Batch {
    /// The number of the first piece of it; the others follow.
    first: u64,
    /// Each with the id that clients know it by.
    news: Vec<(String, News)>,
}

impl Hub {
    fn publish(&self, news: Vec<News>) {
        if news.is_empty() {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = recent.next;
        let news: Vec<_> = news.into_iter().map(|news| (name(), news)).collect();
        recent.next += news.len() as u64;
        // Of very many only the last are kept for those who come back.
        let mut head = news;
        let tail = head.split_off(head.len().saturating_sub(KEPT));
        let middle = first + head.len() as u64;
        // An error only says that nobody listens. Sent under the lock, so that who subscribes gets
        // everything once.
        if !head.is_empty() {
            drop(self.sender.send(Arc::new(Batch { first, news: head })));
        }
        recent.kept += tail.len();
        let batch = Arc::new(Batch {
            first: middle,
            news: tail,
        });
        recent.batches.push_back(Arc::clone(&batch));
        while recent.kept > KEPT && recent.batches.len() > 1 {
            let gone = recent.batches.pop_front();
            recent.kept -= gone.map_or(0, |gone| gone.news.len());
        }
        drop(self.sender.send(batch));
    }

    /// Listens from now on; what came after the event with this id comes first.
    fn subscribe(&self, last: Option<&str>) -> Listening {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        let mut listening = Listening {
            receiver,
            replay: VecDeque::new(),
            has_missed: false,
            after: recent.next.saturating_sub(1),
        };
        let Some(last) = last else {
            return listening;
        };
        let numbered = |batch: &Arc<Batch>| {
            let mut numbers = (batch.first..).zip(&batch.news);
            numbers.find_map(|(number, (name, _))| (name == last).then_some(number))
        };
        match recent.batches.iter().find_map(numbered) {
            Some(number) => {
                listening.after = number;
                let newer = recent.batches.iter();
                let newer =
                    newer.filter(|batch| batch.first + batch.news.len() as u64 > number + 1);
                listening.replay = newer.cloned().collect();
            }
            None => listening.has_missed = true,
        }
        listening
    }
}

struct Listening {
    receiver: broadcast::Receiver<Arc<Batch>>,
    replay: VecDeque<Arc<Batch>>,
    has_missed: bool,
    /// The number of the last piece of news that is known to the client.
    after: u64,
}

impl Events {
    /// Follows a memory, whose directory has to be there, for at most so many clients.
    pub(super) fn follow(store: Scoped, most: usize, log: Log) -> Result<Self, notify::Error> {
        let hub = Arc::new(Hub {
            sender: broadcast::Sender::new(WAITING),
            recent: Mutex::new(Recent {
                next: 1,
                ..Recent::default()
            }),
        });
        let publish = {
            let hub = Arc::clone(&hub);
            move |news| hub.publish(news)
        };
        Ok(Self {
            _watcher: follow::follow(store, publish, log)?,
            hub,
            seats: Seats::new(most),
        })
    }

    /// How many clients listen.
    pub(super) fn listeners(&self) -> usize {
        self.seats.taken()
    }
}

fn name() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// One client, and what is to be sent to it.
struct Client {
    server: Server,
    caller: Caller,
    listening: Listening,
    /// What is sent before any news.
    greeting: VecDeque<Event>,
    /// The batch that is being sent, and how much of it is.
    batch: Option<(Arc<Batch>, usize)>,
    stopping: watch::Receiver<bool>,
    until: Instant,
    _seat: Seat,
}

/// `GET /v1/events`
pub(super) async fn events(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if crate::store::is_disabled(server.store(&caller).directory()) {
        return Err(Problem::disabled());
    }
    let seat = match server.events().seats.take(caller.user.as_str()) {
        Ok(seat) => seat,
        Err(NoSeat::Full) => return Err(Problem::busy("too many clients listen", 10)),
        Err(NoSeat::Share(share)) => return Err(Problem::too_many_streams(share)),
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let listening = server.events().hub.subscribe(last);
    // Nobody listens for longer than his token holds.
    let left = (caller.until - server.now()).to_std().unwrap_or_default();
    let mut client = Client {
        stopping: server.stopping(),
        until: Instant::now() + left.min(Duration::from_hours(24 * 30)),
        server,
        caller,
        listening,
        greeting: VecDeque::new(),
        batch: None,
        _seat: seat,
    };
    client
        .greeting
        .push_back(Event::default().retry(Duration::from_secs(2)));
    if client.listening.has_missed {
        let hint =
            json!({ "hint": "look for yourself: what came in between is not known any more" });
        let event = Event::default().event("missed").data(hint.to_string());
        client.greeting.push_back(event);
    }
    let stream = stream::unfold(client, |mut client| async {
        let event = client.next().await?;
        Some((Ok::<_, Infallible>(event), client))
    });
    let alive = KeepAlive::new().interval(ALIVE).text("alive");
    let mut response = Sse::new(stream).keep_alive(alive).into_response();
    // What stands between must not wait for more.
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Client {
    /// The next event; `None` ends the stream.
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
            batch = self.listening.receiver.recv() => match batch {
                Ok(batch) => Some(batch),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    self.server.metrics().dropped_listener();
                    None
                }
                Err(broadcast::error::RecvError::Closed) => None,
            },
            _ = self.stopping.wait_for(|stopping| *stopping) => None,
            () = tokio::time::sleep_until(self.until) => None,
        }
    }

    /// The next event of the batch that is being sent that this client may see.
    fn of_batch(&mut self) -> Option<Event> {
        let (batch, sent) = self.batch.take()?;
        let store = self.server.store(&self.caller);
        for (at, (name, news)) in batch.news.iter().enumerate().skip(sent) {
            let number = batch.first + at as u64;
            if number > self.listening.after && store.admits(&news.entry) {
                let event = Event::default().event("memory_updated").id(name);
                let event = event.data(news.data().to_string());
                self.batch = Some((batch, at + 1));
                return Some(event);
            }
        }
        None
    }
}
