//! Clients that only hold connections: the others get their answers nevertheless.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

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

#[test]
fn idle_connections_keep_nobody_out() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ann = token(&workspace, "ann", "*");
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
    drop(idle);
    answers(&served, "/healthz", &ann);
}
