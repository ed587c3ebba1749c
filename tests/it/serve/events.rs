//! What changes reaches those who listen, soon, and nobody else.
#![allow(clippy::print_stdout, reason = "how much memory it took is said")]

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use super::{Served, bearer, execution, token};
use crate::support::EVER;
use crate::workspace::Workspace;

/// Somebody who listens.
pub(crate) struct Listener(BufReader<TcpStream>);

impl Listener {
    pub(crate) fn new(served: &Served, token: &str, last: Option<&str>) -> Self {
        let mut stream = served.connect();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let head = format!(
            "GET /v1/events HTTP/1.1\r\nHost: {}\r\n{}\r\n{last}Accept: text/event-stream\r\n\
             Connection: close\r\n\r\n",
            served.host(),
            bearer(token)
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Self(reader)
    }

    /// The next event: its name, its id and its data; `None` where none comes within so long.
    pub(crate) fn next(&mut self, within: Duration) -> Option<(String, String, Value)> {
        self.0.get_ref().set_read_timeout(Some(within)).unwrap();
        let (mut name, mut id, mut data) = (String::new(), String::new(), None);
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event: ") {
                text.clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).ok();
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some((name, id, data));
            }
        }
    }

    /// Whether the stream ends within so long.
    fn ends(&mut self, within: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(within)).unwrap();
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}

const QUIET: Duration = Duration::from_millis(400);

#[test]
fn a_write_by_any_process_reaches_whoever_may_see_it_within_200_ms() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let (ann, hr) = (
        token(&workspace, "ann", "*"),
        token(&workspace, "bob", "hr"),
    );
    let (mut all, mut few) = (
        Listener::new(&served, &ann, None),
        Listener::new(&served, &hr, None),
    );
    let mut last = (String::new(), String::new(), Value::Null);
    for n in 0..10 {
        let content = format!("Voice: calm {n}");
        let add = [
            "memory", "add", "--user", "ann", "--type", "brand_memory", "--content", &content,
        ];
        workspace.run(&add).succeeds();
        last = all.next(EVER).unwrap();
        assert_eq!(last.0, "memory_updated");
        let id = format!("MEM-{:03}", n + 1);
        let expected = json!({ "kind": "memory", "id": id, "skill": null, "user_id": "ann",
            "memory_type": "brand_memory", "operation": "INSERT" });
        assert_eq!(last.2, expected);
    }
    assert_eq!(few.next(QUIET), None, "it was not his to see");
    // An edit, a removal, and another domain.
    workspace
        .run(&[
            "memory", "edit", "MEM-001", "--user", "ann", "--set", "content=Voice: loud",
        ])
        .succeeds();
    assert_eq!(all.next(EVER).unwrap().2["operation"], "UPDATE");
    workspace
        .run(&["memory", "forget", "MEM-001", "--user", "ann"])
        .succeeds();
    let gone = all.next(EVER).unwrap();
    assert_eq!(
        (&gone.2["operation"], &gone.2["id"]),
        (&json!("DELETE"), &json!("MEM-001"))
    );
    execution(&served, &ann, "finance/expense-check", "x");
    assert_eq!(all.next(EVER).unwrap().2["skill"], "finance/expense-check");
    assert_eq!(few.next(QUIET), None, "finance is not hr");
    execution(&served, &ann, "hr/resume-screen", "x");
    assert_eq!(few.next(EVER).unwrap().2["skill"], "hr/resume-screen");
    all.next(EVER).unwrap();
    // Who comes back is told to read the records again.
    let mut back = Listener::new(&served, &ann, Some(&last.1));
    assert_eq!(back.next(EVER).unwrap().0, "missed");
    assert_eq!(back.next(QUIET), None);
}

#[test]
fn a_program_that_writes_files_anew_is_heard_too() {
    let workspace = Workspace::sample();
    let entry = |n: u32, outcome: &str| {
        json!({ "execution_id": format!("EXEC-2026010100000{n}"), "skill": "hr/x", "outcome": outcome,
            "timestamp": "2026-01-01T00:00:00Z", "input_summary": {}, "output_summary": {} })
    };
    let write = |entries: &[Value]| {
        workspace.write(
            ".agentura/episodic_memory.json",
            json!({ "entries": entries }).to_string(),
        );
    };
    write(&[entry(1, "accepted")]);
    let served = Served::start(&workspace, &[]);
    let ann = token(&workspace, "ann", "hr");
    let mut listener = Listener::new(&served, &ann, None);
    let mut check = |entries: &[Value], expected: &str| {
        write(entries);
        let told = listener.next(EVER).unwrap().2;
        let told = format!(
            "{} {}",
            told["operation"].as_str().unwrap(),
            told["id"].as_str().unwrap()
        );
        assert_eq!(told, expected);
    };
    check(
        &[entry(1, "accepted"), entry(2, "accepted")],
        "INSERT EXEC-20260101000002",
    );
    check(
        &[entry(1, "rejected"), entry(2, "accepted")],
        "UPDATE EXEC-20260101000001",
    );
    check(&[entry(2, "accepted")], "DELETE EXEC-20260101000001");
}

#[test]
fn a_stream_ends_with_its_token_and_with_the_server() {
    let mut workspace = Workspace::sample();
    // The real clock: a token has to run out while somebody listens.
    workspace.set("MEMCTL_NOW", "");
    let mut served = Served::start(&workspace, &[]);
    let short = workspace.json(&["token", "--sub", "ann", "--scope", "hr", "--ttl", "2s"]);
    let mut listener = Listener::new(&served, short["token"].as_str().unwrap(), None);
    assert!(listener.ends(EVER));
    let long = token(&workspace, "ann", "hr");
    let mut listener = Listener::new(&served, &long, None);
    assert!(!listener.ends(QUIET));
    served.signal("-TERM");
    assert!(listener.ends(EVER));
    assert_eq!(served.wait(), Some(0));
}

/// A client that asks for events and reads nothing at all, not even the head.
fn deaf(served: &Served, token: &str) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let address: SocketAddr = served.host().parse().unwrap();
    socket.connect(&address.into()).unwrap();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n",
        served.host(),
        bearer(token)
    );
    (&socket).write_all(head.as_bytes()).unwrap();
    socket
}

#[test]
fn who_does_not_read_is_dropped_and_costs_nobody_anything() {
    const ENTRIES: usize = 4_000;
    let workspace = Workspace::sample();
    let write = |outcome: &str| {
        let entry = |n: usize| {
            json!({ "execution_id": format!("EXEC-20260101{n:06}"), "skill": "hr/x", "outcome": outcome,
                "timestamp": "2026-01-01T00:00:00Z", "input_summary": {}, "output_summary": {} })
        };
        let entries: Vec<Value> = (0..ENTRIES).map(entry).collect();
        let data = json!({ "entries": entries });
        workspace.write(".agentura/episodic_memory.json", data.to_string());
    };
    write("accepted");
    let served = Served::start(&workspace, &[]);
    let (ann, bob) = (
        token(&workspace, "ann", "hr"),
        token(&workspace, "bob", "hr"),
    );
    let mut reads = Listener::new(&served, &ann, None);
    let mut reads_not = deaf(&served, &bob);
    let before = served.resident();
    // More than the buffers between the two can hold.
    let mut told = 0;
    for turn in 0..8 {
        write(["rejected", "accepted"][turn % 2]);
        for _ in 0..ENTRIES {
            let event = reads.next(EVER).unwrap();
            assert_eq!(event.2["operation"], "UPDATE");
            told += 1;
        }
    }
    let grown = served.resident().saturating_sub(before);
    println!("{told} events, {} MB more", grown >> 20);
    assert!(grown < 64 << 20, "{grown} bytes more");
    // Whoever reads is told, while the other is waited for and when he is gone.
    for more in 1..=5 {
        execution(&served, &ann, "hr/y", &format!("{more}"));
        assert_eq!(reads.next(EVER).unwrap().2["operation"], "INSERT");
    }
    // What was on the way is all that comes; then the connection ends.
    std::thread::sleep(Duration::from_secs(12));
    let limit = Some(Duration::from_secs(5));
    reads_not.set_read_timeout(limit).unwrap();
    let mut rest = Vec::new();
    let end = reads_not.read_to_end(&mut rest);
    let is_over = end.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
    assert!(is_over);
    let got = String::from_utf8_lossy(&rest).matches("event: ").count();
    assert!(got < told, "{got} of {told}");
}
