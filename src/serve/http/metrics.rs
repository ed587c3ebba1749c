//! Metrics in the text format of Prometheus.
//!
//! Requests are counted by route (never by path parameters), with their latency. Record counts
//! include only records that the requesting token may see. No metric contains the name of a skill,
//! a user or a domain.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};

use crate::model::Kind;

/// Upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

/// Counters of a server.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    took: Mutex<BTreeMap<String, ResponseTimes>>,
    pub(super) in_flight: AtomicI64,
    /// Number of slow clients that were dropped from event streams.
    dropped: AtomicU64,
    /// Number of stalled connections that were closed.
    stalled: AtomicU64,
    /// Number of idle connections that were evicted.
    evicted: AtomicU64,
}

#[derive(Default)]
struct ResponseTimes {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    pub(super) fn count(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
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

    /// Counts a slow client that was dropped from an event stream.
    pub(super) fn dropped_listener(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stalled_connection(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection that was evicted.
    pub(super) fn evicted_connection(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn text(&self, listeners: usize, commits: u64, records: &[(Kind, u64)]) -> String {
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
            let ResponseTimes { count, sum, .. } = took;
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
                "Clients disconnected because they were too slow for the events.",
                dropped.to_string(),
            ),
            (
                "memctl_connections_stalled_total",
                "counter",
                "Connections closed because the client did not read.",
                stalled.to_string(),
            ),
            (
                "memctl_connections_evicted_total",
                "counter",
                "Idle connections closed for new ones.",
                evicted.to_string(),
            ),
            (
                "memctl_group_commits_total",
                "counter",
                "Writes that requests shared to add records.",
                commits.to_string(),
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
