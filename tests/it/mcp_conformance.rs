//! The official conformance suite of the Model Context Protocol, from npm, against `memctl serve`.
//!
//! The suite calls tools, resources and prompts of its own. They are listed below as expected
//! failures, each with a reason, in the suite's format, so that the suite fails if one of them
//! passes. It sends no token; a loopback proxy adds one, and the server runs with everything in
//! front of `/mcp`.
//!
//! Slow, and therefore ignored; `make test-clients` installs it and runs this.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::serve::{Served, bearer, token};
use crate::workspace::{Ran, Workspace};

/// Required scenarios, each with a minimum number of checks.
const APPLY: [(&str, usize); 7] = [
    ("server-initialize", 1),
    ("ping", 1),
    ("tools-list", 1),
    // Methods of unsupported features are answered with empty lists, as the suite requires.
    ("completion-complete", 1),
    ("resources-list", 1),
    ("prompts-list", 1),
    ("dns-rebinding-protection", 2),
];

/// Scenarios that do not apply, each with a reason.
const DO_NOT: [(&str, &[&str]); 7] = [
    (
        "wants a tool of the suite's own, `test_…` or `json_schema_2020_12_tool`",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "json-schema-2020-12",
        ],
    ),
    (
        "wants such a tool, and messages of the server while it works, which need a session",
        &["tools-call-with-logging", "tools-call-with-progress"],
    ),
    (
        "wants such a tool, which asks the client's model or its user; ours ask nobody",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    (
        "warns that there is no session; answers are one document each, and no stream is there to be polled",
        &["server-sse-polling", "server-sse-multiple-streams"],
    ),
    (
        "log messages are not offered: there is nobody to send them to without a session",
        &["logging-set-level"],
    ),
    (
        "no resources are offered",
        &[
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "no prompts are offered",
        &[
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
];

/// The suite, and the newer Node.js beside it; says that it was skipped where it is not there.
fn suite() -> Option<Command> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let modules = target.join("clients/mcp/node_modules");
    let script = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let node: Option<PathBuf> = ["x64", "arm64"]
        .map(|arch| modules.join(format!("node-linux-{arch}/bin/node")))
        .into_iter()
        .find(|program| program.exists());
    let (Some(node), true) = (node, script.exists()) else {
        println!(
            "skipped: `{}` is not there; type `make test-clients`",
            script.display()
        );
        return None;
    };
    let mut command = Command::new(node);
    command.arg(script).arg("server");
    Some(command)
}

/// A proxy on the loopback that adds a header to every request. One request a connection, so that no more
/// than its head has to be understood.
struct Proxy {
    listener: TcpListener,
}

impl Proxy {
    fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { listener }
    }

    fn origin(&self) -> String {
        let port = self.listener.local_addr().unwrap().port();
        format!("http://localhost:{port}")
    }

    /// Serves in the background until the test ends.
    fn serve(self, to: &str, header: &str) {
        let (to, header) = (to.to_owned(), header.to_owned());
        thread::spawn(move || {
            for client in self.listener.incoming().flatten() {
                let (to, header) = (to.clone(), header.clone());
                // A connection that breaks is the suite's to notice.
                thread::spawn(move || drop(pass(&client, &to, &header)));
            }
        });
    }
}

fn pass(mut client: &TcpStream, to: &str, header: &str) -> std::io::Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut more = [0; 4096];
        let count = client.read(&mut more)?;
        if count == 0 {
            return Ok(());
        }
        read.extend_from_slice(&more[..count]);
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let mut lines: Vec<&str> = head
        .split("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"))
        .collect();
    lines.extend([header, "Connection: close"]);
    let mut server = TcpStream::connect(to)?;
    server.write_all(lines.join("\r\n").as_bytes())?;
    server.write_all(&read[end..])?;
    thread::scope(|scope| {
        scope.spawn(|| std::io::copy(&mut &*client, &mut &server));
        let copied = std::io::copy(&mut &server, &mut &*client);
        client.shutdown(Shutdown::Both)?;
        copied.map(drop)
    })
}

#[test]
#[ignore = "needs the MCP conformance suite: make test-clients"]
fn the_official_suite_passes_where_it_applies() {
    let Some(mut suite) = suite() else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let proxy = Proxy::bind();
    let origin = proxy.origin();
    // The suite's own address is a page that may ask; a foreign one, which it tries as well, may not.
    let served = Served::start(
        &workspace,
        &["--rate-limit", "0", "--allow-origin", &origin],
    );
    let header = bearer(&token(&workspace, "ann", "*"));
    proxy.serve(served.host(), &header);
    let do_not = DO_NOT.iter().flat_map(|(_, names)| names.iter());
    let names: Vec<String> = do_not.map(|name| format!("  - {name}\n")).collect();
    let baseline = workspace.write("baseline.yml", format!("server:\n{}", names.concat()));
    let output = suite
        .args(["--url", &format!("{origin}/mcp"), "--suite", "all"])
        .arg("--expected-failures")
        .arg(&baseline)
        .arg("-o")
        .arg(workspace.root().join("results"))
        .output();
    let ran = Ran::of(output.unwrap());
    for (name, least) in APPLY {
        let line = ran.stdout.lines().find_map(|line| {
            let rest = line.strip_prefix("✓ ")?.strip_prefix(name)?;
            rest.strip_prefix(": ")?.strip_suffix(" passed, 0 failed")
        });
        let passed: usize = line
            .unwrap_or_else(|| panic!("{name} fails: {ran:?}"))
            .parse()
            .unwrap();
        assert!(passed >= least, "{name}: {passed}");
    }
    // Nothing else fails, and nothing that is listed as failing passes.
    ran.succeeds();
}
