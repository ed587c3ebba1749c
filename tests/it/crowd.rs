//! The real program with many processes at once, killed processes, full disks, read-only
//! directories and damaged files.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{RUN_SCRIPTED, scripted, skipped};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const EXECUTIONS: &str = "episodic_memory.json";
const CORRECTIONS: &str = "corrections.json";
const RULES: &str = "reflexion_entries.json";
fn rule(case: &str) -> String {
    format!("When the application of case {case} names no employer, ALWAYS ask for one.")
}

fn correct<'a>(execution: &'a str, text: &'a str) -> [&'a str; 8] {
    [
        "correct", SKILL, "--execution-id", execution, "--correction", text, "--model", "offline",
    ]
}

/// The ids in a data file, which must be JSON for everybody.
fn ids(workspace: &Workspace, file: &str, field: &str) -> Vec<String> {
    let file = workspace.stored(file);
    let entries = file.as_object().unwrap().values().next().unwrap();
    let id = |entry: &Value| entry[field].as_str().unwrap().to_owned();
    entries.as_array().unwrap().iter().map(id).collect()
}

fn distinct(ids: &[String]) -> BTreeSet<&str> {
    ids.iter().map(String::as_str).collect()
}

/// Bytes of the data files, without derived files.
fn bytes_of(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(".index") {
            continue;
        }
        if path.is_dir() {
            found.extend(bytes_of(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn sixteen_writers_at_once_lose_nothing_and_a_reader_never_sees_less_than_before() {
    writers_at_once(12, 5);
}

#[test]
#[ignore = "a minute: make test-storm"]
fn sixteen_writers_of_hundreds_of_records_lose_nothing() {
    writers_at_once(50, 20);
}

/// Eight processes that run a skill so many times, and eight that correct it, beside one that reads.
fn writers_at_once(runs_each: usize, corrections_each: usize) {
    const WRITERS: usize = 8;
    let workspace = scripted();
    let acknowledged = Mutex::new(Vec::<String>::new());
    let done = AtomicBool::new(false);
    let (runs, corrections, looks) = std::thread::scope(|scope| {
        let (workspace, acknowledged, done) = (&workspace, &acknowledged, &done);
        let runners: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    for _ in 0..runs_each {
                        let ran = workspace.json(&RUN_SCRIPTED);
                        let id = ran["execution_id"].as_str().unwrap().to_owned();
                        acknowledged.lock().unwrap().push(id.clone());
                        ids.push(id);
                    }
                    ids
                })
            })
            .collect();
        let correctors: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while ids.len() < corrections_each {
                        // A record acknowledged by one process is visible to every other one.
                        let Some(execution) = acknowledged.lock().unwrap().last().cloned() else {
                            std::thread::sleep(Duration::from_millis(2));
                            continue;
                        };
                        let text = rule(&format!("{writer}-{}", ids.len()));
                        let report = workspace.json(&correct(&execution, &text));
                        assert_eq!(report["execution_id"], execution.as_str());
                        assert!(report["reflexion_id"].is_string(), "{report}");
                        ids.push(report["correction_id"].as_str().unwrap().to_owned());
                    }
                    ids
                })
            })
            .collect();
        let reader = scope.spawn(move || {
            let count = |report: &Value, name: &str| report[name].as_u64().unwrap();
            let mut before = [0; 3];
            let mut looks = 0;
            loop {
                let is_last = done.load(Ordering::SeqCst);
                let known = acknowledged.lock().unwrap().len() as u64;
                let status = Ran::of(
                    workspace
                        .command()
                        .args(["memory", "status", "--json"])
                        .output()
                        .unwrap(),
                );
                assert_eq!((status.code, status.stderr.as_str()), (0, ""), "{status:?}");
                let status = status.document();
                assert_eq!(status["problems"], serde_json::json!([]));
                let list = workspace.run(&["memory", "list", "executions", "-n", "3", "--json"]);
                assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{list:?}");
                let now = ["executions", "corrections", "reflexions"].map(|n| count(&status, n));
                assert!(
                    now.iter().zip(&before).all(|(now, before)| now >= before),
                    "{before:?} came down to {now:?}"
                );
                assert!(now[0] >= known, "{known} were acknowledged, {now:?} seen");
                assert!(count(&list.document(), "total") >= now[0]);
                before = now;
                looks += 1;
                if is_last {
                    return looks;
                }
            }
        });
        let collect = |threads: Vec<std::thread::ScopedJoinHandle<'_, Vec<String>>>| {
            let ids = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            ids.collect::<Vec<String>>()
        };
        let (runs, corrections) = (collect(runners), collect(correctors));
        done.store(true, Ordering::SeqCst);
        (runs, corrections, reader.join().unwrap())
    });
    assert!(looks > 5, "the reader looked only {looks} times");

    let stored = ids(&workspace, EXECUTIONS, "execution_id");
    assert_eq!(stored.len(), WRITERS * runs_each);
    assert_eq!(distinct(&stored).len(), WRITERS * runs_each);
    assert_eq!(distinct(&stored), distinct(&runs));
    let stored_corrections = ids(&workspace, CORRECTIONS, "correction_id");
    assert_eq!(stored_corrections.len(), WRITERS * corrections_each);
    assert_eq!(distinct(&stored_corrections), distinct(&corrections));
    assert_eq!(distinct(&corrections).len(), WRITERS * corrections_each);
    for execution in ids(&workspace, CORRECTIONS, "execution_id") {
        assert!(distinct(&stored).contains(execution.as_str()));
    }
    let rules = ids(&workspace, RULES, "reflexion_id");
    assert_eq!(distinct(&rules).len(), WRITERS * corrections_each);
    assert_eq!(rules.len(), WRITERS * corrections_each);
    let learnt_from = ids(&workspace, RULES, "correction_id");
    assert_eq!(distinct(&learnt_from), distinct(&corrections));
    // The guardrail file is written by many as well.
    let guardrails = workspace.read("skills/hr/resume-screen/GUARDRAILS.md");
    for case in (0..WRITERS).flat_map(|w| (0..corrections_each).map(move |n| format!("{w}-{n}"))) {
        let said = format!("**Rule**: {}", rule(&case));
        assert_eq!(guardrails.matches(&said).count(), 1, "{case}");
    }
    workspace.run(&["doctor"]).succeeds();
    assert!(!workspace.memory("recovered").exists());
}

/// Ids that a process had printed before it was killed.
fn printed(output: &str, field: &str) -> Vec<String> {
    let documents = output.lines().map(serde_json::from_str::<Value>);
    let id = |document: Value| document[field].as_str().map(str::to_owned);
    documents.filter_map(|d| d.ok().and_then(id)).collect()
}

/// Runs a script whose processes are all killed after so many milliseconds; answers what they had
/// said by then.
fn kill_after(workspace: &Workspace, script: &str, round: u64, ms: u64) -> String {
    let program = workspace.command();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(program.get_program())
        .arg(round.to_string())
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut shell = shell.spawn().unwrap();
    let group = rustix::process::Pid::from_child(&shell);
    std::thread::sleep(Duration::from_millis(ms));
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    let mut said = String::new();
    let mut stdout = shell.stdout.take().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    shell.wait().unwrap();
    said
}

#[test]
fn twenty_kills_lose_nothing_that_was_acknowledged() {
    kills(20, 4);
}

#[test]
#[ignore = "two minutes: make test-storm"]
fn a_hundred_kills_lose_nothing_that_was_acknowledged() {
    kills(100, 20);
}

/// Kills processes at so many moments, and more where they came before so many records of each kind were acknowledged.
fn kills(least: u64, acknowledged: usize) {
    // The odd rounds correct, the even ones run.
    const LOOP: &str = r#"n=0; while :; do n=$((n+1))
        if [ $(($2 % 2)) = 0 ]; then
            "$1" run hr/resume-screen --input fixtures/sample_input.json \
                --model scripted:replies.jsonl --json
        else
            "$1" correct hr/resume-screen --execution-id latest --model offline --json \
                --correction "When the application of case $2-$n names no employer, ALWAYS ask for one."
        fi
    done"#;
    let workspace = scripted();
    // There is something to lose from the first round on. A busy machine gets more time.
    let start = Instant::now();
    workspace.json(&RUN_SCRIPTED);
    workspace.json(&correct("latest", &rule("one")));
    // From the second rule on, a correction looks for the rules near it.
    workspace.json(&correct("latest", &rule("two")));
    let span = u64::try_from(start.elapsed().as_millis()).unwrap().max(30) * 2;
    let mut executions: BTreeSet<String> = BTreeSet::new();
    let mut corrections: BTreeSet<String> = BTreeSet::new();
    let mut torn = 0;
    for round in 0..4 * least {
        let is_enough = executions.len() > acknowledged && corrections.len() > acknowledged;
        if round >= least && is_enough {
            break;
        }
        // Moments in no order. A machine that has become busier since gets more time.
        let span = span << (round / least);
        let said = kill_after(&workspace, LOOP, round, 1 + round * 37 % span);
        executions.extend(printed(&said, "execution_id"));
        corrections.extend(printed(&said, "correction_id"));
        let list = |kind| {
            let list = workspace.json(&["memory", "list", kind, "-n", "100000"]);
            let ids = list["records"].as_array().unwrap().iter();
            let ids: BTreeSet<String> = ids.map(|r| r["id"].as_str().unwrap().into()).collect();
            ids
        };
        let gone: Vec<_> = executions.difference(&list("execution")).cloned().collect();
        assert!(gone.is_empty(), "round {round} lost {gone:?}");
        let stored = list("correction");
        let gone: Vec<_> = corrections.difference(&stored).cloned().collect();
        assert!(gone.is_empty(), "round {round} lost {gone:?}");
        if workspace.run(&["doctor"]).code != 0 {
            torn += 1;
            workspace.json(&RUN_SCRIPTED);
            let text = rule(&format!("mended-{round}"));
            workspace.json(&correct("latest", &text));
            workspace.run(&["doctor"]).succeeds();
        }
    }
    assert!(
        executions.len() > acknowledged && corrections.len() > acknowledged,
        "{torn} torn, {} and {} acknowledged: the processes were killed before they did anything",
        executions.len(),
        corrections.len()
    );
    // One more of each, and the files are JSON for everybody.
    workspace.json(&RUN_SCRIPTED);
    workspace.json(&correct("latest", &rule("last")));
    let stored = ids(&workspace, EXECUTIONS, "execution_id");
    assert_eq!(distinct(&stored).len(), stored.len());
    assert!(executions.iter().all(|id| stored.contains(id)));
    let stored = ids(&workspace, CORRECTIONS, "correction_id");
    assert_eq!(distinct(&stored).len(), stored.len());
    assert!(corrections.iter().all(|id| stored.contains(id)));
}

/// The program with a limit on the size of the files that it may write, in blocks of 512 bytes.
fn with_file_limit(workspace: &Workspace, blocks: u64, args: &[&str]) -> Ran {
    let program = workspace.command();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -f \"$1\"; shift; exec \"$@\"", "sh"])
        .arg(blocks.to_string())
        .arg(program.get_program())
        .args(args)
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::null());
    Ran::of(shell.output().unwrap())
}

/// The file that an error says it has kept an answer in.
fn kept(ran: &Ran) -> PathBuf {
    let (_, rest) = ran.stderr.split_once("kept in `").unwrap();
    PathBuf::from(rest.split_once('`').unwrap().0)
}

#[test]
fn a_file_that_may_not_grow_stays_as_it_was_and_the_answer_is_kept_beside_it() {
    let workspace = scripted();
    let path = workspace.memory(EXECUTIONS);
    while fs::metadata(&path).map_or(0, |m| m.len()) < 9_000 {
        workspace.json(&RUN_SCRIPTED);
    }
    workspace.json(&correct("latest", &rule("first")));
    let size = fs::metadata(&path).unwrap().len();
    // The limit lies before the old closing brackets, and at several places in the new entry: some
    // of it can be written, and has to be taken back.
    for blocks in [size / 512, size / 512 + 1, size / 512 + 2] {
        let before = fs::read(&path).unwrap();
        let ran = with_file_limit(&workspace, blocks, &RUN_SCRIPTED);
        ran.fails(
            3,
            "the model answered, but the execution could not be stored",
        );
        assert!(ran.stderr.contains(EXECUTIONS), "{ran:?}");
        assert!(ran.stderr.contains("too large"), "{ran:?}");
        assert!(ran.stderr.contains("hint:"), "{ran:?}");
        assert_eq!(fs::read(&path).unwrap(), before, "limit {blocks}");
        let kept = kept(&ran);
        assert!(kept.starts_with(workspace.memory("recovered")), "{kept:?}");
        let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
        assert_eq!(kept["output_summary"]["overall_score"], 72);
        assert_eq!(kept["cost_usd"], 0.5);
        assert_eq!(kept["skill"], SKILL);
    }
    workspace.run(&["doctor"]).succeeds();
    // A correction is small enough, and the other files go on.
    let report = with_file_limit(&workspace, size / 512, &correct("latest", &rule("second")));
    report.succeeds();
    workspace.json(&RUN_SCRIPTED);
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn the_beginning_of_a_paid_answer_is_kept_even_if_the_call_and_the_store_fail() {
    let workspace = scripted();
    let path = workspace.memory(EXECUTIONS);
    while fs::metadata(&path).map_or(0, |m| m.len()) < 9_000 {
        workspace.json(&RUN_SCRIPTED);
    }
    workspace.write("model.sh", "echo half an answer; exit 3");
    let before = fs::read(&path).unwrap();
    let run = ["run", SKILL, "--model", "exec:sh model.sh"];
    let ran = with_file_limit(&workspace, before.len() as u64 / 512, &run);
    let kept = kept(ran.fails(3, "too large"));
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept["outcome"], "error");
    assert_eq!(kept["output_summary"]["raw_output"], "half an answer\n");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn where_no_file_may_be_written_nobody_is_asked_and_nothing_is_left() {
    let mut workspace = scripted();
    workspace.set("ASKED", &workspace.root().join("asked").to_string_lossy());
    workspace.write("model.sh", "touch \"$ASKED\"; echo answer");
    let run = ["run", SKILL, "--model", "exec:sh model.sh"];
    let ran = with_file_limit(&workspace, 0, &run);
    ran.fails(3, "cannot write `");
    assert!(ran.stderr.contains(".agentura"), "{ran:?}");
    assert!(!workspace.root().join("asked").exists());
    let left = bytes_of(&workspace.memory(""));
    assert!(left.iter().all(|(_, bytes)| bytes.is_empty()), "{left:?}");
    assert_eq!(left.len(), 1, "only the lock: {left:?}");
    workspace.json(&run);
    assert!(workspace.root().join("asked").exists());
}

/// A very small file system, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"]);
        let output = mount.arg(at).output().ok()?;
        output.status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let workspace = scripted();
    let Some(_disk) = SmallDisk::mount(&workspace.memory("")) else {
        return skipped("a full disk: this user may not mount a small one");
    };
    let ballast = workspace.memory("ballast");
    fs::write(&ballast, [0; 16 << 10]).unwrap();
    let mut stored = Vec::new();
    let full = loop {
        let ran = workspace.run(&[&RUN_SCRIPTED[..], &["--json"]].concat());
        if ran.code != 0 {
            break ran;
        }
        let id = ran.document()["execution_id"].as_str().unwrap().to_owned();
        stored.push(id);
        assert!(stored.len() < 200, "64 kB never end");
    };
    assert!(stored.len() > 5, "{full:?}");
    assert_eq!(full.code, 3, "{full:?}");
    let error = &full.document()["error"];
    assert_eq!(error["kind"], "store", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("No space left on device"), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("free space"));
    assert_eq!(ids(&workspace, EXECUTIONS, "execution_id"), stored);

    // Not a byte is free now.
    let filler = workspace.memory("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write(&[0; 512]).is_ok() {}
    drop(file);
    let before = fs::read(workspace.memory(EXECUTIONS)).unwrap();
    let ran = workspace.run(&RUN_SCRIPTED);
    ran.fails(3, "No space left on device");
    let text = rule("full");
    let ran = workspace.run(&correct("latest", &text));
    ran.fails(3, "No space left on device");
    assert!(!workspace.memory(CORRECTIONS).exists());
    assert_eq!(fs::read(workspace.memory(EXECUTIONS)).unwrap(), before);
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(status["executions"], stored.len());
    assert_eq!(status["problems"], serde_json::json!([]));

    fs::remove_file(&ballast).unwrap();
    workspace.json(&correct("latest", &text));
    assert_eq!(ids(&workspace, CORRECTIONS, "correction_id"), ["CORR-001"]);
    assert_eq!(ids(&workspace, EXECUTIONS, "execution_id"), stored);
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn an_answer_that_fits_nowhere_in_the_memory_directory_is_kept_elsewhere() {
    let workspace = scripted();
    workspace.json(&RUN_SCRIPTED);
    let Some(_disk) = SmallDisk::mount(&workspace.memory("")) else {
        return skipped("a full disk: this user may not mount a small one");
    };
    workspace.json(&RUN_SCRIPTED);
    // The answer itself fills the disk.
    let long = "x".repeat(100_000);
    workspace.write("replies.jsonl", format!("{{\"reply\": \"{long}\"}}"));
    let before = fs::read(workspace.memory(EXECUTIONS)).unwrap();
    let ran = workspace.run(&RUN_SCRIPTED);
    ran.fails(3, "No space left on device");
    let kept = kept(&ran);
    assert!(!kept.starts_with(workspace.root()), "{kept:?}");
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept["output_summary"]["raw_output"], long);
    assert_eq!(fs::read(workspace.memory(EXECUTIONS)).unwrap(), before);
    workspace.run(&["doctor"]).succeeds();
}

/// Somebody for whom the modes of files hold: whoever runs the tests, or nobody in place of root.
struct Somebody {
    workspace: Workspace,
    wrap: Vec<String>,
}

impl Somebody {
    /// `None`, with a message, if root cannot switch to another user.
    fn new() -> Option<Self> {
        let workspace = scripted();
        let top = workspace.root().parent().unwrap().to_owned();
        let program = top.join("memctl");
        // The program may be in a directory that only its builder can read.
        fs::copy(env!("CARGO_BIN_EXE_memctl"), &program).unwrap();
        let mut wrap = Vec::new();
        if fs::metadata(&top).unwrap().uid() == 0 {
            let become_nobody = [
                "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
            ];
            wrap = become_nobody.map(str::to_owned).to_vec();
            give(&top);
        }
        let somebody = Self { workspace, wrap };
        let can = somebody
            .try_run(&["--version"])
            .is_some_and(|ran| ran.code == 0);
        if !can {
            skipped("read-only directories: root ignores them, and cannot become somebody else");
        }
        can.then_some(somebody)
    }

    fn try_run(&self, args: &[&str]) -> Option<Ran> {
        let program = self.workspace.command();
        let path = self.workspace.root().parent()?.join("memctl");
        let line: Vec<&str> = self.wrap.iter().map(String::as_str).collect();
        let (first, rest) = match line.split_first() {
            Some((first, rest)) => (Path::new(*first), [rest, &[path.to_str()?]].concat()),
            None => (path.as_path(), Vec::new()),
        };
        let mut command = Command::new(first);
        command
            .args(rest)
            .args(args)
            .current_dir(program.get_current_dir()?)
            .env_clear()
            .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .stdin(Stdio::null());
        command.output().ok().map(Ran::of)
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.try_run(args).unwrap()
    }
}

/// Changes the owner of a directory and its content to `nobody`.
fn give(path: &Path) {
    chown(path, Some(65534), Some(65534)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// Sets the mode of a directory and of everything in it: directories may be entered, and nothing
/// may be written unless `writable`.
fn set_writable(path: &Path, writable: bool) {
    let is_dir = path.is_dir();
    let mode = if is_dir { 0o555 } else { 0o444 } | if writable { 0o200 } else { 0 };
    if is_dir {
        for entry in fs::read_dir(path).unwrap() {
            set_writable(&entry.unwrap().path(), writable);
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_memory_is_read_and_refuses_writers_by_name() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    let memory = somebody.workspace.memory("");
    somebody.run(&RUN_SCRIPTED).succeeds();
    let text = rule("first");
    somebody.run(&correct("latest", &text)).succeeds();
    let before = bytes_of(&memory);
    set_writable(&memory, false);
    let name = memory.to_string_lossy();
    let name = name.trim_end_matches('/');
    let text = rule("second");
    for args in [
        &RUN_SCRIPTED[..],
        &correct("latest", &text),
        &["accept", "latest"],
        &["memory", "forget", "REFL-001"],
        &["init"],
    ] {
        let ran = somebody.run(args);
        if args == ["init"] {
            // There is nothing left to do, or it cannot be done.
            assert!(matches!(ran.code, 0 | 3), "{ran:?}");
            continue;
        }
        ran.fails(3, name);
        assert!(ran.stderr.contains("Permission denied"), "{ran:?}");
    }
    assert_eq!(bytes_of(&memory), before);
    somebody.run(&["memory", "status"]).succeeds();
    somebody.run(&["memory", "list", "executions"]).succeeds();
    let prompt = somebody.run(&["memory", "prompt", SKILL]);
    assert!(prompt.succeeds().stdout.contains("REFL-001"), "{prompt:?}");
    somebody.run(&["memory", "search", "employer"]).succeeds();
    let doctor = somebody.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(
        doctor.stdout.contains("file: nothing can be written: ") && doctor.stdout.contains(name),
        "{doctor:?}"
    );
    set_writable(&memory, true);
    somebody.run(&["doctor"]).succeeds();
    somebody.run(&RUN_SCRIPTED).succeeds();
}

/// What is wrong with one file or directory, `doctor` names; the owner is told what they can do.
#[test]
fn doctor_names_what_cannot_be_written() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    somebody.run(&RUN_SCRIPTED).succeeds();
    somebody.run(&["doctor"]).succeeds();
    let memory = somebody.workspace.memory("");
    let check = |path: &Path, mode: u32, name: &str| {
        let before = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let doctor = somebody.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{doctor:?}");
        let line = format!("{name}`: Permission denied");
        assert!(doctor.stdout.contains(&line), "{name}: {doctor:?}");
        let ran = somebody.run(&RUN_SCRIPTED);
        fs::set_permissions(path, before).unwrap();
        ran
    };
    // Lines are appended to files that are there; a new file cannot be made.
    check(&memory, 0o555, ".agentura").succeeds();
    let ran = check(&memory.join(".lock"), 0o000, ".lock");
    ran.fails(3, ".lock");
    assert!(ran.stderr.contains("hint: chmod u+rwX /"), "{ran:?}");
    somebody.run(&["doctor"]).succeeds();
}

#[test]
fn a_project_that_cannot_be_written_gets_no_half_of_a_memory() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    let root = somebody.workspace.root();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o555)).unwrap();
    let ran = somebody.run(&RUN_SCRIPTED);
    ran.fails(
        3,
        somebody
            .workspace
            .memory("")
            .to_string_lossy()
            .trim_end_matches('/'),
    );
    assert!(!root.join(".agentura").exists());
    somebody.run(&["memory", "status"]).succeeds();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    if !somebody.wrap.is_empty() {
        chown(&root, Some(0), Some(0)).unwrap();
        let ran = somebody.run(&RUN_SCRIPTED);
        ran.fails(3, "change to the directory of yours");
        chown(&root, Some(65534), Some(65534)).unwrap();
    }
    somebody.run(&RUN_SCRIPTED).succeeds();
}

#[test]
fn read_only_skills_cost_the_guardrail_and_nothing_else() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    let skills = somebody.workspace.root().join("skills");
    set_writable(&skills, false);
    let before = bytes_of(&skills);
    somebody.run(&RUN_SCRIPTED).succeeds();
    let text = rule("first");
    let ran = somebody.run(&[&correct("latest", &text)[..], &["--json"]].concat());
    let report = ran.succeeds().document();
    assert_eq!(report["correction_id"], "CORR-001");
    assert_eq!(report["reflexion_id"], "REFL-001");
    assert_eq!(report["guardrails"], serde_json::json!([]));
    assert!(
        ran.stderr
            .starts_with("warning: the guardrail was not added: ")
            && ran.stderr.contains("GUARDRAILS.md")
            && ran.stderr.contains("Permission denied"),
        "{ran:?}"
    );
    assert_eq!(bytes_of(&skills), before);
    assert_eq!(
        ids(&somebody.workspace, RULES, "correction_id"),
        ["CORR-001"]
    );
    // The warning names the way out.
    set_writable(&skills, true);
    somebody.run(&["undo"]).succeeds();
    somebody.run(&correct("latest", &text)).succeeds();
    assert_ne!(bytes_of(&skills), before);
    somebody.run(&["doctor"]).succeeds();
}

/// A memory with three executions, two corrections and two rules.
fn remembered() -> Workspace {
    let workspace = scripted();
    for _ in 0..3 {
        workspace.json(&RUN_SCRIPTED);
    }
    for case in ["first", "second"] {
        workspace.json(&correct("latest", &rule(case)));
    }
    workspace
}

#[test]
fn a_torn_file_is_mended_by_the_next_write() {
    let workspace = remembered();
    let path = workspace.memory(EXECUTIONS);
    let whole = fs::read(&path).unwrap();
    let third = whole.len() - 40;
    fs::write(&path, &whole[..third]).unwrap();
    let doctor = workspace.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    let lines = String::from_utf8_lossy(&whole[..third]).lines().count();
    assert!(doctor.stdout.contains(EXECUTIONS), "{doctor:?}");
    let line: usize = doctor
        .stdout
        .split_once(" line ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .unwrap();
    assert!(line > 1 && line <= lines, "{doctor:?}");
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(status["executions"], 2);
    let problem = status["problems"][0].as_str().unwrap();
    assert!(
        problem.contains(EXECUTIONS) && problem.contains("memctl doctor"),
        "{problem}"
    );
    assert_eq!(
        fs::read(&path).unwrap(),
        whole[..third],
        "reading changes nothing"
    );

    let ran = workspace.run(&RUN_SCRIPTED);
    assert!(
        ran.succeeds().stderr.contains("repaired after a crash"),
        "{ran:?}"
    );
    assert_eq!(ids(&workspace, EXECUTIONS, "execution_id").len(), 3);
    workspace.run(&["doctor"]).succeeds();
    let kept = bytes_of(&workspace.memory("recovered"));
    assert_eq!(kept.len(), 1);
    let rest = String::from_utf8_lossy(&kept[0].1).into_owned();
    assert!(rest.contains("EXEC-20260220124341-3"), "{rest}");
}

#[test]
fn damage_is_named_by_file_and_line_and_repaired_after_a_copy() {
    let workspace = remembered();
    let path = workspace.memory(CORRECTIONS);
    let whole = fs::read_to_string(&path).unwrap();
    // In the first of two entries, so that the damage is followed by something whole.
    let damaged = whole.replacen("\"skill\": \"hr/", "\"skill\": \u{1}hr/", 1);
    assert_ne!(damaged, whole);
    fs::write(&path, &damaged).unwrap();

    let doctor = workspace.run(&["doctor", "--json"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    let doctor = doctor.document();
    assert_eq!(doctor["healthy"], false);
    let problem = &doctor["problems"][0];
    assert!(problem["path"].as_str().unwrap().ends_with(CORRECTIONS));
    let line = problem["line"].as_u64().unwrap();
    assert!((3..=12).contains(&line), "{problem}");
    let page = workspace.run(&["doctor"]);
    assert!(
        page.stdout
            .contains(&format!("{CORRECTIONS}` line {line} ")),
        "{page:?}"
    );
    assert!(page.stdout.contains("memctl doctor --repair"), "{page:?}");

    // All other files still work, and so do the intact entries of this one.
    workspace.run(&RUN_SCRIPTED).succeeds();
    workspace.run(&["memory", "status"]).succeeds();
    let found = workspace.json(&["memory", "search", "employer", "--kind", "reflexion"]);
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
    let shown = workspace.json(&["memory", "show", "CORR-002"]);
    assert_eq!(shown["id"], "CORR-002");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    // A correction behind the damage is either stored or refused, and the damage stays to be seen.
    workspace.json(&correct("latest", &rule("third")));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\u{1}hr/") && text.contains("CORR-003"));

    let repaired = workspace.run(&["doctor", "--repair", "--json"]);
    let copy = repaired.document()["repaired"][0]["copy"]
        .as_str()
        .map(PathBuf::from);
    let copy = copy.unwrap();
    assert!(copy.starts_with(workspace.memory("recovered")), "{copy:?}");
    assert_eq!(fs::read_to_string(copy).unwrap(), text);
    let stored = ids(&workspace, CORRECTIONS, "correction_id");
    assert_eq!(stored, ["CORR-002", "CORR-003"]);
    // The rule of the correction that was lost refers to nothing, which is said.
    let dangling = repaired.document()["dangling"].to_string();
    assert!(dangling.contains("REFL-001"), "{dangling}");
}

#[test]
fn files_that_are_none_of_ours_are_refused_until_they_are_repaired() {
    for content in [
        "[]",
        "hello",
        "{\"entries\": 7}",
        "{\"entries\": [{\"execution_id\": \"EXEC-1\"",
        "\u{0}\u{0}\u{0}\u{0}",
    ] {
        let workspace = remembered();
        let path = workspace.memory(EXECUTIONS);
        fs::write(&path, content).unwrap();
        let doctor = workspace.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{content}: {doctor:?}");
        assert!(
            doctor.stdout.contains(&format!("{EXECUTIONS}` line 1 ")),
            "{doctor:?}"
        );
        workspace.run(&["memory", "status"]).succeeds();
        workspace.run(&["memory", "search", "employer"]).succeeds();
        workspace.run(&["memory", "prompt", SKILL]).succeeds();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        let ran = workspace.run(&RUN_SCRIPTED);
        if ran.code == 0 {
            // A later write repairs the damage from a crash, and keeps the removed bytes.
            assert!(
                ran.stderr.contains("repaired after a crash"),
                "{content}: {ran:?}"
            );
        } else {
            ran.fails(3, EXECUTIONS).fails(3, "memctl doctor --repair");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let repaired = workspace.run(&["doctor", "--repair"]);
        // The executions are gone for good, which their corrections show.
        assert!(
            repaired.stdout.contains("CORR-001 corrects EXEC-"),
            "{repaired:?}"
        );
        let kept = bytes_of(&workspace.memory("recovered"));
        let is_kept = kept.iter().any(|(_, bytes)| {
            let bytes = String::from_utf8_lossy(bytes).into_owned();
            bytes == content || (!bytes.is_empty() && content.ends_with(&bytes))
        });
        assert!(
            is_kept || content.starts_with('\u{0}'),
            "{content}: {kept:?}"
        );
        workspace.run(&RUN_SCRIPTED).succeeds();
        ids(&workspace, EXECUTIONS, "execution_id");
    }
}

#[test]
fn an_empty_file_is_named_and_taken_as_a_memory_with_nothing_in_it() {
    let workspace = scripted();
    workspace.write(".agentura/episodic_memory.json", "");
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(status["executions"], 0);
    let doctor = workspace.run(&["doctor"]);
    assert!(doctor.stdout.contains("the file is empty"), "{doctor:?}");
    workspace.json(&RUN_SCRIPTED);
    workspace.run(&["doctor"]).succeeds();
    assert_eq!(ids(&workspace, EXECUTIONS, "execution_id").len(), 1);
}
