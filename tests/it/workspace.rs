//! A separate workspace for each test, and the real program in it.
//!
//! The program gets an empty environment, a home without settings and a fixed clock, so that its
//! output does not depend on the machine.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use memctl::model::Scope;
use memctl::remote::{Address, PgStore};
use memctl::store::Scoped;
use serde_json::Value;
use tempfile::TempDir;

#[cfg(unix)]
use crate::postgres::{login_of_a_test, over_postgres};

/// The tests start no database server on Windows.
#[cfg(windows)]
const fn over_postgres() -> bool {
    false
}

#[cfg(windows)]
const fn login_of_a_test() -> Option<String> {
    None
}

/// The variable that names the database of a memory.
const DATABASE: &str = "MEMCTL_DATABASE_URL";

/// The variable that names the model of a run.
const MODEL: &str = "MEMCTL_MODEL";

/// What the clock of the program says.
pub(crate) const NOW: &str = "2026-02-20T12:43:41.681444+00:00";

/// A temporary directory with `home/` and `project/`; removed when dropped.
///
/// Where [`over_postgres`] says so, its memory lies in a database: the
/// directory becomes a copy with the first call of the program.
pub(crate) struct Workspace {
    dir: TempDir,
    vars: Vec<(String, String)>,
    joined: OnceLock<()>,
}

impl Workspace {
    /// An empty project: neither `.agentura/` nor `skills/`.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "project", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        // Runs repeat the nearest known case.
        let mut vars = vec![(MODEL.to_owned(), "offline".to_owned())];
        if let Some(url) = login_of_a_test() {
            vars.push((DATABASE.to_owned(), url));
        }
        Self {
            dir,
            vars,
            joined: OnceLock::new(),
        }
    }

    /// A project with the sample skills and fixtures of the repository, and nothing remembered.
    pub(crate) fn sample() -> Self {
        let workspace = Self::empty();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in ["skills", "fixtures"] {
            copy(&repository.join(name), &workspace.root().join(name));
        }
        workspace
    }

    /// The same over the store of this name below `fixtures/stores`.
    pub(crate) fn over(store: &str) -> Self {
        let workspace = Self::sample();
        let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores");
        copy(&stores.join(store), &workspace.memory(""));
        workspace
    }

    /// A project for a user who names no model: what else is configured decides.
    pub(crate) fn naming_no_model(mut self) -> Self {
        self.vars.retain(|(name, _)| name != MODEL);
        self
    }

    /// A project for a user who trusts what lies in it, as if they had begun it: for tests that write the
    /// files of the memory themselves.
    pub(crate) fn trusted(mut self) -> Self {
        self.set("MEMCTL_TRUST", "1");
        self
    }

    /// Signs a line of the undo journal as the user of this workspace would.
    pub(crate) fn signed(&self, line: &Value) -> String {
        use hmac::{KeyInit as _, Mac as _};
        let key = fs::read(self.state().join("key")).unwrap();
        let mut line: memctl::store::ChangeLine = serde_json::from_value(line.clone()).unwrap();
        let text = serde_json::to_string(&line).unwrap();
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
        mac.update(b"journal");
        mac.update(&(text.len() as u64).to_le_bytes());
        mac.update(text.as_bytes());
        let digest = mac.finalize().into_bytes();
        let digit = |n: u8| char::from_digit(n.into(), 16).unwrap();
        let digits = digest.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
        line.mac = Some(digits.collect());
        serde_json::to_string(&line).unwrap()
    }

    /// Sets a variable for every later call.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        // Tests of a database move a memory there themselves, but those of the choice.
        if name.ends_with("DATABASE_URL") {
            self.vars
                .push(("MEMCTL_STORE".to_owned(), "json".to_owned()));
        }
        self
    }

    /// The project directory, in which the program runs.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The project directory as it stands in a JSON string.
    pub(crate) fn root_in_json(&self) -> String {
        let quoted = Value::from(self.root().to_str().unwrap()).to_string();
        quoted.trim_matches('"').to_owned()
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A file of the memory directory.
    pub(crate) fn memory(&self, name: &str) -> PathBuf {
        self.root().join(".agentura").join(name)
    }

    /// Writes a file of the project, and the directories above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of the project.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// A file of the memory directory as JSON, with the entries of the local file of the same kind,
    /// in the order of their ids.
    pub(crate) fn stored(&self, name: &str) -> Value {
        stored_in(&self.root().join(".agentura"), name)
    }

    /// What `status` calls the store.
    pub(crate) fn store_name() -> &'static str {
        if over_postgres() {
            "PgStore"
        } else {
            "JSONStore"
        }
    }

    /// The memory as the library opens it.
    pub(crate) fn store(&self) -> Scoped {
        drop(self.command());
        let store = Scoped::new(self.root().join(".agentura"), Scope::All);
        if !over_postgres() {
            return store;
        }
        let url = self.vars.iter().find(|(name, _)| name == DATABASE);
        let (_, url) = url.unwrap();
        let name = store.primary_name().unwrap().unwrap();
        let primary = PgStore::new(Address::parse(url).unwrap(), name).unwrap();
        store.backed_by(Arc::new(primary))
    }

    /// The program, ready to be started with more arguments.
    pub(crate) fn command(&self) -> Command {
        if over_postgres() {
            self.joined.get_or_init(|| {
                let name = self.dir.path().file_name().unwrap().to_string_lossy();
                let name = format!("memory{}", name.replace('.', "-"));
                let joined = self
                    .plain_command()
                    .args(["remote", "join", &name])
                    .output();
                let joined = Ran::of(joined.unwrap());
                assert_eq!(joined.code, 0, "{joined:?}");
            });
        }
        self.plain_command()
    }

    fn plain_command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memctl"));
        command
            .current_dir(self.root())
            .env_clear()
            .envs(self.user())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("MEMCTL_NOW", NOW)
            // Whatever runs on the machine is nobody's model here.
            .env("MEMCTL_LOCAL_PROBE", "false")
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// What names the directories of the user.
    fn user(&self) -> Vec<(&'static str, PathBuf)> {
        let temporary = self.dir.path().join("tmp");
        if cfg!(unix) {
            return vec![("HOME", self.home()), ("TMPDIR", temporary)];
        }
        let data = self.home().join("AppData");
        let system = std::env::var_os("SystemRoot").unwrap_or_default();
        vec![
            ("USERPROFILE", self.home()),
            ("APPDATA", data.join("Roaming")),
            ("LOCALAPPDATA", data.join("Local")),
            ("TMP", temporary),
            // Sockets need it.
            ("SystemRoot", system.into()),
        ]
    }

    /// The directory of what the program knows about workspaces, such as approvals.
    pub(crate) fn state(&self) -> PathBuf {
        self.home().join(if cfg!(windows) {
            "AppData/Local/memctl/data"
        } else {
            ".local/share/memctl"
        })
    }

    /// The directory of the user's settings.
    pub(crate) fn settings(&self) -> PathBuf {
        self.home().join(if cfg!(windows) {
            "AppData/Roaming/memctl/config"
        } else {
            ".config/memctl"
        })
    }

    /// Replaces the directories of the test in a text. Paths below them have `/`, as in snapshots.
    pub(crate) fn without_directories(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, shown) in [(self.root(), "[project]"), (self.home(), "[home]")] {
            text = text.replace(path.to_str().unwrap(), shown);
        }
        if !cfg!(windows) {
            return text;
        }
        text.split_inclusive(char::is_whitespace)
            .map(
                |word| match word.find("[project]").or(word.find("[home]")) {
                    Some(_) => word.replace('\\', "/"),
                    None => word.to_owned(),
                },
            )
            .collect()
    }

    /// Runs the program to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(self.command().args(args).output().unwrap())
    }

    /// Runs the program with `--json` and reads its document; it must succeed.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: &[S]) -> Value {
        let ran = Ran::of(self.command().args(args).arg("--json").output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.document()
    }

    /// Pairs of rules that wait in `review`: of the kind `contradiction` or `similar`.
    pub(crate) fn pairs(&self, kind: &str) -> Vec<Value> {
        let queue = self.json(&["review"]);
        let waiting = queue["waiting"].as_array().unwrap().iter();
        let pairs = waiting.filter(|one| one["kind"] == kind);
        pairs.cloned().collect()
    }

    /// The same for a check, which may find something.
    pub(crate) fn json_of<S: AsRef<OsStr>>(&self, args: &[S]) -> Value {
        Ran::of(self.command().args(args).arg("--json").output().unwrap()).document()
    }
}

/// What a call of the program left.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The output, without the random words of ids: `PROC-001` for `PROC-001-k3v9q2`.
    pub(crate) fn of(output: Output) -> Self {
        let whole = Self::whole(output);
        Self {
            stdout: without_words(&whole.stdout),
            stderr: without_words(&whole.stderr),
            ..whole
        }
    }

    /// The output as it is.
    pub(crate) fn whole(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output as the one JSON document that it must be.
    pub(crate) fn document(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The call must have failed with this code and said this on standard error.
    pub(crate) fn fails(&self, code: i32, said: &str) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(said), "{self:?}");
        self
    }

    /// The call must have succeeded.
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// Removes the random words of ids that only this machine gives.
pub(crate) fn without_words(text: &str) -> String {
    let local = regex_lite::Regex::new(r"\b((?:PROC|REFL|CORR)-\d{3,})-[0-9a-z]{6}\b").unwrap();
    local.replace_all(text, "$1").into_owned()
}

/// Copies a directory with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A file of a memory directory as JSON, with the counters of this machine, and with the entries of the
/// local file of the same kind, in the order of their ids.
pub(crate) fn stored_in(memory: &Path, name: &str) -> Value {
    let all = whole_stored_in(memory, name);
    serde_json::from_str(&without_words(&all.to_string())).unwrap()
}

fn whole_stored_in(memory: &Path, name: &str) -> Value {
    let read = |name: &str| -> Option<Value> {
        let text = fs::read(memory.join(name)).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    };
    let local = read(&name.replace(".json", ".local.json"));
    let mut shared = read(name);
    let counters = read("evidence.local.json");
    let entries = shared
        .as_mut()
        .and_then(|all| all["entries"].as_array_mut());
    for entry in entries.into_iter().flatten() {
        let id = entry["reflexion_id"]
            .as_str()
            .or(entry["procedure_id"].as_str());
        let counted = counters.as_ref().zip(id);
        let counted = counted.map(|(all, id)| all["records"][id].clone());
        // A record without a time is counted under none.
        let created = entry["created_at"].as_str().unwrap_or_default();
        let counted = counted.filter(|of| of["created_at"] == created);
        let fields = counted.as_ref().and_then(|of| of["fields"].as_object());
        for (field, value) in fields.into_iter().flatten() {
            entry[field] = value.clone();
        }
    }
    let (Some(local), Some(mut all)) = (&local, shared.clone()) else {
        return shared.or(local).unwrap_or_else(|| panic!("no {name}"));
    };
    let root = if name == "corrections.json" {
        "corrections"
    } else {
        "entries"
    };
    let entries = all[root].as_array_mut().unwrap();
    entries.extend(local[root].as_array().unwrap().iter().cloned());
    let field = match name {
        "corrections.json" => "correction_id",
        "procedural_memory.json" => "procedure_id",
        _ => "reflexion_id",
    };
    entries.sort_by_key(|entry| entry[field].as_str().map(str::to_owned));
    all
}
