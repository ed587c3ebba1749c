//! A minute of writers at two servers on one database, with both killed again and again.
#![allow(clippy::print_stdout, reason = "how much was done is said")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::primary::ids_of;
use super::server::own_server;
use super::{ANN, Store};
use crate::serve::load::Client;
use crate::serve::{Served, token};
use crate::support::EVER;
use crate::workspace::Workspace;

/// Number of clients of each server.
const CLIENTS: usize = 16;
const ROUNDS: u32 = 6;
/// Minimum duration of a round.
const ROUND: Duration = Duration::from_secs(10);

/// What clients were told.
#[derive(Default)]
struct Told {
    /// Acknowledged ids.
    stored: Mutex<BTreeSet<String>>,
    count: AtomicU32,
    refused: AtomicU32,
}

impl Told {
    /// Writes until the server is gone.
    fn write(&self, served: &Served, copy: &Workspace, client: usize) {
        let token = token(copy, &format!("user-{client}"), "hr");
        let mut connection = Client::new(served, &token);
        let body = json!({"skill": "hr/resume-screen", "input": {"client": client}, "output": {}});
        while let Some((status, answer)) =
            connection.ask("POST", "/v1/executions", &body.to_string())
        {
            match status {
                201 => {
                    let id = answer["execution_id"].as_str().unwrap().to_owned();
                    assert!(self.stored.lock().unwrap().insert(id), "{answer}");
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                503 => _ = self.refused.fetch_add(1, Ordering::Relaxed),
                _ => panic!("{status} {answer}"),
            }
        }
    }

    /// Waits until more writes are acknowledged.
    fn await_more(&self, more: u32) {
        let (start, before) = (Instant::now(), self.count.load(Ordering::Relaxed));
        while self.count.load(Ordering::Relaxed) < before + more {
            assert!(start.elapsed() < EVER, "no write is acknowledged any more");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Servers that are killed at the end of a round, however it ends: their clients go on until then.
struct Killed<'a>(&'a [Served; 2]);

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        for served in self.0 {
            served.signal("-KILL");
        }
    }
}

#[test]
#[ignore = "a minute: make test-database"]
fn database_and_servers_that_are_killed_lose_nothing_acknowledged() {
    let Some(mut database) = own_server() else {
        return;
    };
    let store = Store::of(&database);
    let copies = [ANN, ANN].map(|user| store.copy(user, "killed"));
    let told = Told::default();
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let served = copies
            .each_ref()
            .map(|copy| Served::start(copy, &["--rate-limit", "0"]));
        std::thread::scope(|scope| {
            let _killed = Killed(&served);
            for client in 0..CLIENTS * copies.len() {
                let at = client % copies.len();
                let (told, served, copy) = (&told, &served[at], &copies[at]);
                scope.spawn(move || told.write(served, copy, client));
            }
            told.await_more(40);
            std::thread::sleep(Duration::from_millis(u64::from(round) * 300));
            database.crash();
            // The servers go on by themselves.
            told.await_more(40);
            std::thread::sleep(ROUND.saturating_sub(begun.elapsed()));
        });
    }
    let [one, two] = copies.each_ref().map(|copy| ids_of(copy, "executions"));
    assert_eq!(one, two);
    let stored = told.stored.into_inner().unwrap();
    let lost: Vec<_> = stored.difference(&one).collect();
    assert!(lost.is_empty(), "{lost:?} of {}", stored.len());
    // What was refused or in flight may be there; nothing else is.
    let refused = told.refused.into_inner();
    let in_flight = ROUNDS as usize * CLIENTS * copies.len();
    assert!(one.len() <= stored.len() + refused as usize + in_flight);
    for copy in &copies {
        copy.run(&["doctor"]).succeeds();
        copy.run(&["memory", "audit", "verify"]).succeeds();
    }
    println!(
        "{} acknowledged, {refused} refused, {} stored",
        stored.len(),
        one.len()
    );
}
