//! n8n, as `make test-n8n` installed it from npm, in a home of its own.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::text;
use crate::serve::{Reply, ask};
use crate::support::free_port;
use crate::workspace::Ran;

/// An n8n that is this test's own; what runs of it ends when it is dropped.
pub(super) struct N8n {
    home: TempDir,
    node: PathBuf,
    program: PathBuf,
    /// Of its pages and webhooks, and of the process that runs the code of nodes.
    ports: (u16, u16),
    server: Option<Child>,
}

impl N8n {
    /// `None`, and said so, where it is not installed or does not run.
    pub(super) fn new() -> Option<Self> {
        let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
            .ancestors()
            .nth(2)
            .unwrap();
        let modules = target.join("clients/n8n/node_modules");
        let program = modules.join("n8n/bin/n8n");
        if !program.is_file() {
            println!("skipped: no `{}`; type `make test-n8n`", program.display());
            return None;
        }
        let node = ["x64", "arm64"]
            .map(|arch| modules.join(format!("node-linux-{arch}/bin/node")))
            .into_iter()
            .find(|node| node.is_file())
            .unwrap_or_else(|| PathBuf::from("node"));
        let n8n = Self {
            home: tempfile::tempdir().unwrap(),
            node,
            program,
            ports: (free_port(), free_port()),
            server: None,
        };
        // Reads its database, and so needs what is compiled for this machine.
        let ran = n8n.run(&["list:workflow"]);
        if ran.code != 0 {
            println!("skipped: n8n does not run: {ran:?}");
            return None;
        }
        Some(n8n)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut path = self
            .node
            .parent()
            .unwrap_or(Path::new(""))
            .as_os_str()
            .to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(&self.node);
        command
            .arg(&self.program)
            .args(arguments)
            .env_clear()
            .current_dir(self.home.path())
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("N8N_USER_FOLDER", self.home.path())
            .env("N8N_ENFORCE_SETTINGS_FILE_PERMISSIONS", "true")
            .env("N8N_LISTEN_ADDRESS", "127.0.0.1")
            .env("N8N_PORT", self.ports.0.to_string())
            .env("N8N_RUNNERS_ENABLED", "true")
            .env("N8N_RUNNERS_BROKER_PORT", self.ports.1.to_string())
            .env("DB_SQLITE_POOL_SIZE", "2")
            // As it will be where nobody says: the workflows read no variables.
            .env("N8N_BLOCK_ENV_ACCESS_IN_NODE", "true")
            // Nothing leaves this machine.
            .env("N8N_DIAGNOSTICS_ENABLED", "false")
            .env("N8N_VERSION_NOTIFICATIONS_ENABLED", "false")
            .env("N8N_TEMPLATES_ENABLED", "false")
            .env("N8N_COMMUNITY_PACKAGES_ENABLED", "false")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    fn import(&self, what: &str, documents: &[Value]) {
        let file = self.home.path().join("import.json");
        std::fs::write(&file, Value::from(documents).to_string()).unwrap();
        let input = format!("--input={}", file.display());
        let ran = self.run(&[&format!("import:{what}"), &input]);
        assert!(
            ran.code == 0 && ran.stdout.contains("Successfully imported"),
            "{ran:?}"
        );
    }

    /// Keeps secrets under their names, as a person does who types them in: `(name, type, fields)`.
    pub(super) fn keep(&self, secrets: &[(&str, &str, Value)]) {
        let credential = |(name, kind, data): &(&str, &str, Value)| {
            let id = name.replace(|c: char| !c.is_alphanumeric(), "");
            json!({ "id": id, "name": name, "type": kind, "data": data })
        };
        let all: Vec<Value> = secrets.iter().map(credential).collect();
        self.import("credentials", &all);
    }

    /// Takes in workflows.
    pub(super) fn add(&self, workflows: &[Value]) {
        self.import("workflow", workflows);
        let listed = self.run(&["list:workflow"]);
        for workflow in workflows {
            let (id, name) = (text(&workflow["id"]), text(&workflow["name"]));
            assert!(
                listed.stdout.contains(&format!("{id}|{name}")),
                "{listed:?}"
            );
        }
    }

    /// Starts the server with these workflows on, and waits until this webhook, which wants a key, answers.
    /// `called` are those that only other workflows start: n8n 1 has them at hand, n8n 2 has to publish them.
    pub(super) fn start(&mut self, on: &[&str], called: &[&str], webhook: &str) {
        let is_first = self.run(&["--version"]).stdout.trim().starts_with("1.");
        let published = if is_first { &[] } else { called };
        for id in on.iter().chain(published) {
            let id = format!("--id={id}");
            let ran = if is_first {
                self.run(&["update:workflow", &id, "--active=true"])
            } else {
                self.run(&["publish:workflow", &id])
            };
            assert_eq!(ran.code, 0, "{ran:?}");
        }
        let log = self.home.path().join("server.log");
        let out = std::fs::File::create(&log).unwrap();
        let mut command = self.command(&["start"]);
        command
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .process_group(0);
        self.server = Some(command.spawn().unwrap());
        let since = Instant::now();
        let address = (std::net::Ipv4Addr::LOCALHOST, self.ports.0);
        while std::net::TcpStream::connect(address).is_err()
            || self.post(webhook, &[], &json!({})).status != 403
        {
            assert!(
                since.elapsed() < Duration::from_mins(2),
                "{}",
                std::fs::read_to_string(&log).unwrap()
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Posts something to a webhook.
    pub(super) fn post(&self, webhook: &str, headers: &[&str], body: &Value) -> Reply {
        let host = format!("127.0.0.1:{}", self.ports.0);
        let path = format!("/webhook/{webhook}");
        ask(&host, "POST", &path, headers, &body.to_string())
    }
}

impl Drop for N8n {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // With the process that runs the code of nodes.
            let group = format!("-{}", server.id());
            drop(Command::new("kill").args(["-KILL", "--", &group]).status());
            drop(server.wait());
        }
    }
}
