//! `memctl serve`: the real program on a real socket.
//!
//! - `access`: who gets in, and what an `hr` token sees and changes of others: nothing.
//! - `keys`: the tokens of another issuer, by its public keys.
//! - `shapes`: what the clients of the source documents send and get.
//! - `native`: executions, corrections, hints, search.
//! - `load`: many clients at once, a stop in order, and a kill.
//! - `defect`: a request that panics.
//! - `own_data`: all data of a user.
//! - `clients`: supabase-js and schemathesis themselves (heavy; `make test-clients`).

pub(crate) mod access;
pub(crate) mod clients;
mod defect;
mod keys;
pub(crate) mod load;
mod native;
pub(crate) mod own_data;
mod shapes;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::workspace::Workspace;

/// A server of a workspace; killed when dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Served {
    /// Starts a server at any free port, with more arguments.
    pub(crate) fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        let mut child = workspace
            .command()
            .args(["serve", "--addr", "127.0.0.1:0", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut said = String::new();
            let mut errors = child.stderr.take().unwrap();
            errors.read_to_string(&mut said).unwrap();
            panic!("it does not listen: {said}");
        }
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { child, url }
    }

    /// The name and port of it.
    pub(crate) fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Sends a request as it is written and reads what comes until the connection closes.
    pub(crate) fn raw(&self, request: &str) -> Reply {
        raw(self.host(), request)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.host())
    }

    /// Asks with these headers, one a line.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Reply {
        ask(self.host(), method, path, headers, body)
    }

    /// Gets something with a token.
    pub(crate) fn get(&self, token: &str, path: &str) -> Reply {
        self.ask("GET", path, &[&bearer(token)], "")
    }

    /// Posts something with a token.
    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[&bearer(token)], &body.to_string())
    }

    /// Calls a tool of agents with a token, and returns its result.
    pub(crate) fn tool(&self, token: &str, name: &str, arguments: &Value) -> Value {
        let headers = [
            &bearer(token) as &str,
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2025-06-18",
        ];
        let asked = call(name, arguments).to_string();
        let answer = self.ask("POST", "/mcp", &headers, &asked).is(200).json();
        answer["result"].clone()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, id.as_str()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end; the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// A call of a tool, as agents make it.
pub(crate) fn call(name: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": name, "arguments": arguments } })
}

/// Connects to this name and port.
pub(crate) fn connect(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).unwrap();
    let limit = Some(Duration::from_mins(1));
    stream.set_read_timeout(limit).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn raw(host: &str, request: &str) -> Reply {
    let mut stream = connect(host);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Reply::read(&String::from_utf8(bytes).unwrap())
}

/// Asks any server at this name and port with these headers, one a line.
pub(crate) fn ask(host: &str, method: &str, path: &str, headers: &[&str], body: &str) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let named = |name: &str| headers.iter().any(|h| h.to_lowercase().starts_with(name));
    if !named("host:") {
        head.push_str(&format!("Host: {host}\r\n"));
    }
    if !body.is_empty() {
        if !named("content-type:") {
            head.push_str("Content-Type: application/json\r\n");
        }
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    raw(host, &format!("{head}\r\n{body}"))
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Reply {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Self {
            status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
            headers,
            text: body.to_owned(),
        }
    }

    /// The document; it must be one.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(n, _)| n == name);
        named.next().map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// A token for a user in these domains.
pub(crate) fn token(workspace: &Workspace, user: &str, scope: &str) -> String {
    let made = workspace.json(&["token", "--sub", user, "--scope", scope]);
    made["token"].as_str().unwrap().to_owned()
}

/// Logs an execution and answers its id.
#[track_caller]
pub(crate) fn execution(served: &Served, token: &str, skill: &str, mark: &str) -> String {
    let body = json!({ "skill": skill, "input": { "mark": mark }, "output": { "score": 7, "mark": mark } });
    let logged = served.post(token, "/v1/executions", &body).is(201).json();
    logged["execution_id"].as_str().unwrap().to_owned()
}
