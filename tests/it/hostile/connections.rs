//! Clients that only hold connections or streams: the others get their answers nevertheless.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::serve::events::Listener;
use crate::serve::{Served, bearer, token};
use crate::workspace::Workspace;

/// More connections than a server has.
const MANY: usize = 600;
/// Idle connections end after 15 seconds, and whoever waits gets their seats. A server that hangs
/// answers nobody.
const SOON: Duration = Duration::from_secs(40);

/// Whether a server answers somebody new, as soon as the idle connections have run out of time.
#[track_caller]
fn answers(served: &Served, path: &str, token: &str) {
    let mut stream = TcpStream::connect(served.host()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\nConnection: close\r\n\r\n",
        served.host(),
        bearer(token)
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    assert!(
        read.is_ok() && text.starts_with("HTTP/1.1 200"),
        "{read:?}: {text}"
    );
}

/// The head of the answer to somebody who wants to listen to events, in lower case.
fn head_of_stream(served: &Served, token: &str) -> String {
    let mut stream = TcpStream::connect(served.host()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n",
        served.host(),
        bearer(token)
    );
    stream.write_all(head.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join("\n").to_lowercase()
}

#[test]
fn idle_connections_keep_nobody_out() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ann = token(&workspace, "ann", "*");
    // Whoever is listening already is not cut off for those who only come.
    let mut listener = Listener::new(&served, &ann, None);
    let mut idle = Vec::new();
    for n in 0..MANY {
        let mut stream = TcpStream::connect(served.host()).unwrap();
        let begun = match n % 3 {
            0 => "",
            1 => "GET /v1/exec",
            _ => "GET /healthz HTTP/1.1\r\nHost: local",
        };
        // An older one may be closed already when its turn comes.
        drop(stream.write_all(begun.as_bytes()));
        idle.push(stream);
    }
    for _ in 0..3 {
        answers(&served, "/healthz", &ann);
        answers(&served, "/v1/executions", &ann);
    }
    let add = [
        "memory", "add", "--user", "ann", "--type", "brand_memory", "--content", "calm",
    ];
    workspace.run(&add).succeeds();
    assert!(
        listener.next(SOON).is_some(),
        "the stream of events was cut off"
    );
    drop(idle);
    answers(&served, "/healthz", &ann);
}

#[test]
fn one_user_does_not_take_all_streams_of_events() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let (ann, again) = (
        token(&workspace, "ann", "*"),
        token(&workspace, "ann", "hr"),
    );
    let bob = token(&workspace, "bob", "hr");
    let mut streams: Vec<Listener> = (0..32)
        .map(|_| Listener::new(&served, &ann, None))
        .collect();
    // Another token of the same user is the same user.
    for token in [&ann, &again] {
        let head = head_of_stream(&served, token);
        assert!(head.starts_with("http/1.1 429"), "{head}");
        let wait = head
            .lines()
            .find_map(|line| line.strip_prefix("retry-after: "));
        assert!(
            wait.is_some_and(|wait| wait.parse::<u64>().is_ok_and(|wait| wait > 0)),
            "{head}"
        );
    }
    let _bob = Listener::new(&served, &bob, None);
    // A stream that ends makes room for another one of the same user.
    streams.pop();
    let mut freed = false;
    for _ in 0..100 {
        freed = head_of_stream(&served, &ann).starts_with("http/1.1 200");
        if freed {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(freed, "the seat was not given back");
}
