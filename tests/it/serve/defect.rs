//! A defect of this program costs one request its answer, and nobody else anything.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{TimeDelta, Utc};
use memctl::model::Scope;
use memctl::serve::http::{Options, Origins, RATE, Server, bind};
use memctl::serve::token::{AUDIENCE, Keys, NewToken, Secret, Verifier, mint};
use memctl::store::Scoped;

use super::{Reply, bearer};
use crate::index::engine;

#[test]
fn a_request_that_panics_ends_alone() {
    // What is shipped unwinds too.
    assert!(include_str!("../../../Cargo.toml").contains("\npanic = \"unwind\"\n"));
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(Scoped::new(dir.path().join("memory"), Scope::All));
    engine.begin().unwrap();
    let file = dir.path().join("secret");
    let secret = || Secret::read_or_make(&file, || "0123456789-abcdef".repeat(2)).unwrap();
    let ann = NewToken {
        sub: "ann".parse().unwrap(),
        domains: vec!["hr".to_owned()],
        role: "authenticated".to_owned(),
        audience: AUDIENCE.to_owned(),
        ttl: TimeDelta::hours(1),
    };
    let token = mint(&ann, &secret(), Utc::now()).unwrap().token;
    let broken = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&broken);
    let bound = bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = bound.address;
    let server = Server::new(Options {
        workspace: engine,
        verifier: Verifier::new(Keys::Secret(secret()), AUDIENCE.to_owned()),
        origins: Origins::new(&[], &[]).unwrap(),
        rate_limit: RATE,
        clock: Box::new(move || {
            assert!(!asked.load(Ordering::SeqCst), "a defect");
            Utc::now()
        }),
        log: Arc::new(|_| {}),
        access_log: None,
    });
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let serving = std::thread::spawn(move || {
        runtime.block_on(bound.serve(server, async { drop(stopped.await) }))
    });
    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("Host: {address}\r\nConnection: close\r\n{}", bearer(&token));
        let request = format!("GET /v1/executions HTTP/1.1\r\n{head}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Reply::read(&String::from_utf8(bytes).unwrap())
    };
    ask().is(200);
    broken.store(true, Ordering::SeqCst);
    // The connection is closed without an answer.
    ask().is(0);
    broken.store(false, Ordering::SeqCst);
    ask().is(200);
    stop.send(()).unwrap();
    serving.join().unwrap().unwrap();
}
