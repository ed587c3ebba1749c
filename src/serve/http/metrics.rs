//! How the server does, in the text form of Prometheus.
//!
//! Counted are requests by their route (never by what stands in its place), and how long their answers
//! took. The numbers of records are those that the asking token sees. No name of a skill, a user or a
//! domain stands in any of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::model::Kind;
use crate::serve::token::Caller;

use super::problem::Problem;
use super::state::Server;

/// The upper ends of the buckets of a histogram, in seconds.
const BUCKETS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    took: Mutex<BTreeMap<String, Took>>,
    in_flight: AtomicI64,
    /// Clients that were too slow for the events.
    dropped: AtomicU64,
    /// Connections that were cut off.
    stalled: AtomicU64,
    /// Idle connections that ended for others.
    evicted: AtomicU64,
}

#[derive(Default)]
struct Took {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    fn count(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let key = (method.to_string(), route.to_owned(), status.as_u16());
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(key).or_default() += 1;
        drop(requests);
        let seconds = took.as_secs_f64();
        let mut all = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        let took = all.entry(route.to_owned()).or_default();
        for (bucket, end) in took.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= end);
        }
        took.count += 1;
        took.sum += seconds;
    }

    /// Counts a client that was too slow for the events.
    pub(super) fn dropped_listener(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stalled_connection(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection that ended for another one.
    pub(super) fn evicted_connection(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    fn text(&self, listeners: usize, records: &[(Kind, u64)]) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let name = "memctl_http_requests_total";
        head(
            &mut text,
            name,
            "counter",
            "Requests by method, route and status.",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, route, status), count) in requests.iter() {
            let _ = writeln!(
                text,
                "{name}{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            );
        }
        drop(requests);
        let name = "memctl_http_request_duration_seconds";
        head(
            &mut text,
            name,
            "histogram",
            "Time until the answer began, by route.",
        );
        let took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        for (route, took) in took.iter() {
            for (end, count) in BUCKETS.iter().zip(took.buckets) {
                let _ = writeln!(
                    text,
                    "{name}_bucket{{route=\"{route}\",le=\"{end}\"}} {count}"
                );
            }
            let Took { count, sum, .. } = took;
            let _ = writeln!(
                text,
                "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(text, "{name}_sum{{route=\"{route}\"}} {sum}");
            let _ = writeln!(text, "{name}_count{{route=\"{route}\"}} {count}");
        }
        drop(took);
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let dropped = self.dropped.load(Ordering::Relaxed);
        let stalled = self.stalled.load(Ordering::Relaxed);
        let evicted = self.evicted.load(Ordering::Relaxed);
        let numbers = [
            (
                "memctl_http_in_flight",
                "gauge",
                "Requests in flight.",
                in_flight.to_string(),
            ),
            (
                "memctl_event_listeners",
                "gauge",
                "Clients that listen to events.",
                listeners.to_string(),
            ),
            (
                "memctl_event_listeners_dropped_total",
                "counter",
                "Clients that were too slow for the events.",
                dropped.to_string(),
            ),
            (
                "memctl_connections_stalled_total",
                "counter",
                "Connections that were cut off since the client did not read.",
                stalled.to_string(),
            ),
            (
                "memctl_connections_evicted_total",
                "counter",
                "Idle connections that ended to make room for others.",
                evicted.to_string(),
            ),
        ];
        for (name, kind, help, value) in numbers {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "{name} {value}");
        }
        let name = "memctl_records";
        head(
            &mut text,
            name,
            "gauge",
            "Records that the token sees, by kind.",
        );
        for (kind, count) in records {
            let _ = writeln!(text, "{name}{{kind=\"{kind}\"}} {count}");
        }
        text
    }
}

/// Counts a request, names it, and says in the log what became of it.
pub(super) async fn observe(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>();
    // What no route has asked for would be a list without an end.
    let route = path.map_or("other", MatchedPath::as_str).to_owned();
    let id = request_id(&request).unwrap_or_else(|| server.random());
    server.metrics().in_flight.fetch_add(1, Ordering::Relaxed);
    let mut response = next.run(request).await;
    server.metrics().in_flight.fetch_sub(1, Ordering::Relaxed);
    let (status, took) = (response.status(), start.elapsed());
    server.metrics().count(&method, &route, status, took);
    let problem = response.extensions().get::<Problem>();
    if let Some(inner) = problem.and_then(|problem| problem.inner.as_deref()) {
        server.log(&format!("{method} {route} {id}: {inner}"));
    }
    server.log_access(|| {
        let ms = took.as_secs_f64() * 1_000.0;
        format!("{method} {route} {} {ms:.1} ms {id}", status.as_u16())
    });
    if let Ok(id) = id.parse() {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// The name that the client has given to its request, if it is one that fits on a line.
fn request_id(request: &Request) -> Option<String> {
    let id = request.headers().get("x-request-id")?.to_str().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !id.is_empty() && id.len() <= 64 && id.chars().all(plain);
    fits.then(|| id.to_owned())
}

/// `GET /metrics`
pub(super) async fn metrics(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let work = server.work(&caller, "serve metrics", |engine| {
        let count = |kind| Ok((kind, engine.store.count(kind)?));
        let counts: Result<Vec<_>, crate::store::Error> =
            Kind::ALL.into_iter().map(count).collect();
        Ok(counts?)
    });
    let records = work.await?;
    let text = server.metrics().text(server.events().listeners(), &records);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
