//! Many clients at once, a stop in order, and a kill: whatever was acknowledged is there.
#![allow(clippy::print_stdout, reason = "how long it took is said")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Served, bearer, token};
use crate::support::EVER;
use crate::terminal::Terminal;
use crate::workspace::Workspace;

const CLIENTS: usize = 32;

/// A client that keeps its connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Client {
    pub(crate) fn new(served: &Served, token: &str) -> Self {
        Self {
            stream: BufReader::new(served.connect()),
            host: served.host().to_owned(),
            token: token.to_owned(),
        }
    }

    /// The status and the document; `None` where the connection is gone.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let (host, token) = (&self.host, &self.token);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            bearer(token),
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().ok()?;
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.trim().parse().ok()?;
            } else if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some((status, serde_json::from_slice(&body).ok()?))
    }

    /// Logs an execution; its id, if that was acknowledged.
    pub(crate) fn write(&mut self, mark: &str) -> Option<String> {
        let body = json!({ "skill": "hr/resume-screen", "input": { "mark": mark }, "output": { "score": 1 } });
        let (status, said) = self.ask("POST", "/v1/executions", &body.to_string())?;
        assert_eq!(status, 201, "{said}");
        Some(said["execution_id"].as_str()?.to_owned())
    }
}

/// The ids in a data file, which must be JSON for everybody.
fn stored(workspace: &Workspace, file: &str, field: &str) -> Vec<String> {
    let entries = workspace.stored(file)["entries"]
        .as_array()
        .unwrap()
        .clone();
    entries
        .iter()
        .map(|entry| entry[field].as_str().unwrap().to_owned())
        .collect()
}

/// Reads and writes by many clients for at least so long; says how long requests took.
fn mixed(seconds: u64) {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &["--rate-limit", "0"]);
    let end = Instant::now() + Duration::from_secs(seconds);
    let results: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (workspace, served) = (&workspace, &served);
                scope.spawn(move || {
                    let token = token(workspace, &format!("user-{n}"), "hr");
                    let mut client = Client::new(served, &token);
                    let (mut runs, mut memories, mut took) = (Vec::new(), Vec::new(), Vec::new());
                    let mut round = 0;
                    // On a busy machine too, each client does everything twice.
                    while round < 16 || Instant::now() < end {
                        round += 1;
                        let start = Instant::now();
                        let kind = match round % 8 {
                            0 => {
                                let text = format!("user {n} likes the number {round}");
                                let body =
                                    json!({ "content": text, "memory_type": "user_preferences" });
                                let path = "/functions/v1/agent-memory-write";
                                let (status, said) =
                                    client.ask("POST", path, &body.to_string()).unwrap();
                                assert_eq!(status, 200, "{said}");
                                memories.push(said["memory"]["id"].as_str().unwrap().to_owned());
                                "write"
                            }
                            1 | 3 | 5 => {
                                runs.push(client.write(&format!("{n}/{round}")).unwrap());
                                "write"
                            }
                            7 => {
                                let path =
                                    "/v1/search?query=likes+number&kind=memory&fusion=keyword";
                                let (status, said) = client.ask("GET", path, "").unwrap();
                                assert_eq!(status, 200, "{said}");
                                "search"
                            }
                            _ => {
                                let (status, said) =
                                    client.ask("GET", "/v1/executions?limit=5", "").unwrap();
                                assert_eq!(status, 200, "{said}");
                                // Everybody sees what he has been told is kept.
                                "read"
                            }
                        };
                        took.push((kind, start.elapsed()));
                    }
                    (runs, memories, took)
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let mut took: Vec<(&str, Duration)> = Vec::new();
    let (mut runs, mut memories) = (Vec::new(), Vec::new());
    for (of_runs, of_memories, of_took) in results {
        runs.extend(of_runs);
        memories.extend(of_memories);
        took.extend(of_took);
    }
    for kind in ["write", "read", "search"] {
        let mut times: Vec<Duration> = took
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, t)| *t)
            .collect();
        times.sort();
        let at = |share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a place in a list"
            )]
            let place = (times.len() as f64 * share) as usize;
            times[place.min(times.len() - 1)]
        };
        println!(
            "{CLIENTS} clients, {seconds} s: {} of {kind}, p50 {:?}, p99 {:?}, longest {:?}",
            times.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    let kept = stored(&workspace, "episodic_memory.json", "execution_id");
    assert_eq!(kept.len(), runs.len());
    assert_eq!(
        kept.iter().collect::<BTreeSet<_>>(),
        runs.iter().collect::<BTreeSet<_>>()
    );
    let kept = stored(&workspace, "memories.json", "id");
    assert_eq!(kept.len(), memories.len());
    assert_eq!(
        kept.iter().collect::<BTreeSet<_>>(),
        memories.iter().collect::<BTreeSet<_>>()
    );
    assert!(runs.len() > CLIENTS, "{} writes", runs.len());
    workspace.run(&["memory", "audit", "verify"]).succeeds();
}

#[test]
fn thirty_two_clients_lose_no_write() {
    mixed(4);
}

#[test]
#[ignore = "a minute: cargo test --release --test it serve::load -- --ignored --nocapture"]
fn thirty_two_clients_for_a_minute_lose_no_write() {
    mixed(60);
}

/// Longest time that 99 of 100 requests of a guest take beside somebody who asks all the time. A debug build
/// computes many times as long.
const GUEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });

#[test]
fn busy_user_delays_nobody_else() {
    let workspace = Workspace::sample();
    let entry = |n: usize| {
        json!({ "execution_id": format!("EXEC-20260101{n:06}"), "skill": "hr/x", "outcome": "accepted",
            "timestamp": "2026-01-01T00:00:00Z", "input_summary": {"number": n, "text": "a person asked"},
            "output_summary": {"said": format!("answer {n} of many")} })
    };
    let entries: Vec<Value> = (0..5_000).map(entry).collect();
    let data = json!({ "entries": entries });
    workspace.write(".agentura/episodic_memory.json", data.to_string());
    let served = Served::start(&workspace, &["--rate-limit", "0"]);
    let go_on = AtomicBool::new(true);
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        for n in 0..CLIENTS {
            let (workspace, served, go_on) = (&workspace, &served, &go_on);
            scope.spawn(move || {
                let mut hog = Client::new(served, &token(workspace, "hog", "hr"));
                let mut round = 0;
                while go_on.load(Ordering::Relaxed) {
                    round += 1;
                    // What was just written is not in the index.
                    let mark = format!("{n}/{round}");
                    let body = json!({ "skill": "hr/x", "input": { "mark": mark }, "output": {} });
                    drop(hog.ask("POST", "/v1/executions", &body.to_string()));
                    drop(hog.ask("GET", "/v1/search?query=answer+of+many&fusion=keyword", ""));
                }
            });
        }
        std::thread::sleep(Duration::from_secs(1));
        let mut guest = Client::new(&served, &token(&workspace, "guest", "hr"));
        let run = json!({ "skill": "hr/x", "input": {}, "output": {} }).to_string();
        let hint = json!({ "error": "Error: no such answer" }).to_string();
        let requests = [
            ("GET", "/v1/executions?limit=5", ""),
            ("GET", "/v1/search?query=answer&fusion=keyword", ""),
            ("POST", "/v1/hints", hint.as_str()),
            ("POST", "/v1/executions", run.as_str()),
        ];
        let asked = requests
            .iter()
            .cycle()
            .take(200)
            .map(|(method, path, body)| {
                std::thread::sleep(Duration::from_millis(5));
                let start = Instant::now();
                let (status, said) = guest.ask(method, path, body).unwrap();
                assert!(matches!(status, 200 | 201), "{path}: {said}");
                start.elapsed()
            });
        let took = asked.collect();
        go_on.store(false, Ordering::Relaxed);
        took
    });
    took.sort();
    println!("guest: p50 {:?}, p99 {:?}", took[100], took[197]);
    assert!(took[197] <= GUEST, "{took:?}");
}

#[test]
fn acknowledged_writes_survive_a_kill_and_a_stop() {
    for signal in ["-KILL", "-TERM", "-INT"] {
        let workspace = Workspace::sample();
        let mut served = Served::start(&workspace, &["--rate-limit", "0"]);
        let acknowledged = Mutex::new(Vec::new());
        let go_on = AtomicBool::new(true);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (workspace, served) = (&workspace, &served);
                let (acknowledged, go_on) = (&acknowledged, &go_on);
                scope.spawn(move || {
                    let token = token(workspace, "ann", "hr");
                    let mut client = Client::new(served, &token);
                    let mut round = 0;
                    while go_on.load(Ordering::Relaxed) {
                        round += 1;
                        let Some(id) = client.write(&format!("{n}/{round}")) else {
                            return;
                        };
                        acknowledged.lock().unwrap().push(id);
                    }
                });
            }
            let start = Instant::now();
            while acknowledged.lock().unwrap().len() < 60
                && start.elapsed() < Duration::from_mins(1)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            served.signal(signal);
            std::thread::sleep(Duration::from_millis(300));
            go_on.store(false, Ordering::Relaxed);
        });
        let code = served.wait();
        assert_eq!(code, (signal != "-KILL").then_some(0), "{signal}");
        let acknowledged = acknowledged.into_inner().unwrap();
        assert!(acknowledged.len() >= 60, "{signal}: {}", acknowledged.len());
        // The next one who writes mends what a kill has torn.
        let again = Served::start(&workspace, &[]);
        let ann = token(&workspace, "ann", "hr");
        let last = super::execution(&again, &ann, "hr/resume-screen", "after");
        let kept = stored(&workspace, "episodic_memory.json", "execution_id");
        let kept: BTreeSet<&String> = kept.iter().collect();
        for id in acknowledged.iter().chain([&last]) {
            assert!(kept.contains(id), "{signal}: {id} is lost");
        }
        assert_eq!(
            acknowledged.iter().collect::<BTreeSet<_>>().len(),
            acknowledged.len()
        );
    }
}

#[test]
fn a_request_in_flight_is_answered_before_the_server_stops() {
    let workspace = Workspace::sample();
    let mut served = Served::start(&workspace, &[]);
    let ann = token(&workspace, "ann", "hr");
    let body = json!({ "skill": "hr/resume-screen", "input": {}, "output": {} }).to_string();
    let (first, rest) = body.split_at(10);
    let mut stream = served.connect();
    let head = format!(
        "POST /v1/executions HTTP/1.1\r\nHost: localhost\r\n{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{first}",
        bearer(&ann),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    served.signal("-TERM");
    std::thread::sleep(Duration::from_millis(200));
    stream.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(served.wait(), Some(0));
    assert_eq!(
        stored(&workspace, "episodic_memory.json", "execution_id").len(),
        1
    );
}

/// A server that was started with `nohup` goes on.
#[test]
fn end_of_its_terminal_stops_a_server_in_order() {
    let workspace = Workspace::sample();
    let Some(terminal) = Terminal::open(&workspace, 80, 24) else {
        return;
    };
    let read = |name: &str| {
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(workspace.root().join(name)).unwrap_or_default();
            if text.ends_with('\n') {
                return text;
            }
            assert!(begun.elapsed() < EVER, "{name}: {text:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let serve = "memctl serve --addr 127.0.0.1:0 --json";
    terminal.type_line(&format!(
        "nohup {serve} > daemon 2> /dev/null < /dev/null & echo $! > daemon-pid"
    ));
    terminal.type_line(&format!(
        "{serve} > said & echo $! > pid; wait $!; echo $? > code"
    ));
    let daemon: Value = serde_json::from_str(&read("daemon")).unwrap();
    read("said");
    let kill = |signal: &str, pid: &str| {
        let mut kill = std::process::Command::new("kill");
        assert!(
            kill.args([signal, read(pid).trim()])
                .status()
                .unwrap()
                .success()
        );
    };
    // As when the window is closed.
    kill("-HUP", "daemon-pid");
    kill("-HUP", "pid");
    assert_eq!(read("code"), "0\n");
    let host = daemon["url"].as_str().unwrap().strip_prefix("http://");
    let reply = super::ask(host.unwrap(), "GET", "/v1/search", &[], "");
    assert_eq!(reply.status, 401, "{reply:?}");
    kill("-TERM", "daemon-pid");
}

/// `Served` does not read standard error, and a pipe takes 64 KB.
#[test]
fn log_that_nobody_reads_stops_no_request() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &["--verbose", "--rate-limit", "0"]);
    let mut client = Client::new(&served, &token(&workspace, "ann", "*"));
    for number in 0..4_000 {
        let answer = client.ask("GET", "/healthz", "");
        assert_eq!(answer.unwrap_or_else(|| panic!("{number}")).0, 200);
    }
}
