//! Links, pipes, devices and second names in the places of files.
//!
//! A clone or an archive decides what lies under each name of `.agentura` and `skills`. Whatever it is,
//! no command may change or show a file outside, wait without end, or take all memory.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::workspace::{Ran, Workspace, copy};

/// A word of the memory, and what stands in its place in the files outside.
const OWN: &str = "Quokka";
const FOREIGN: &str = "Outsider";

/// Most bytes of address space, and seconds, that a command may take: far more than any needs.
const KILOBYTES: &str = "4194304";
const SECONDS: &str = "60";

/// Files of a memory directory, and temporary names of older programs.
const MEMORY: &[&str] = &[
    "workspace.json",
    ".lock",
    "audit.jsonl",
    "changes.jsonl",
    "tombstones.jsonl",
    "hints.jsonl",
    "execution_logs.jsonl",
    "primary.json",
    "replica",
    "config.toml",
    "prompts/reflect.md",
    "prompts/judge.md",
    "disabled",
    ".gitignore",
    ".writable",
    ".index/sources",
    ".index/primary.json",
    ".index/procedures.terms",
    ".index/procedures.offsets",
    ".index/reflexions.offsets",
    ".index/search/list.json",
    ".index/search/lock",
    "remote/state.json",
    "remote/other/procedural_memory.json",
    "remote/other/memories.json",
    ".procedural_memory.json.tmp",
    ".memories.json.tmp",
    ".workspace.json.tmp",
    ".config.toml.tmp",
    "..writable.tmp",
    ".index/.sources.tmp",
];

/// Directories of a memory directory.
const MEMORY_DIRECTORIES: &[&str] = &[
    ".index", ".index/sessions", ".index/search", "prompts", "remote", "remote/other", "recovered",
];

const SKILLS: &[&str] = &[
    "WORKSPACE.md",
    "DOMAIN.md",
    "hr/WORKSPACE.md",
    "hr/DOMAIN.md",
    "hr/GUARDRAILS.md",
    "hr/resume-screen/SKILL.md",
    "hr/resume-screen/GUARDRAILS.md",
    "hr/resume-screen/DOMAIN.md",
    "hr/resume-screen/WORKSPACE.md",
    "hr/resume-screen/examples/a.json",
    "hr/resume-screen/fixtures/sample_input.json",
    "hr/resume-screen/tests/generated/test_correction_1.json",
    "hr/resume-screen/tests/generated/test_correction_1.py",
    "hr/resume-screen/tests/generated/test_correction_2.json",
    "hr/resume-screen/tests/generated/test_promptfoo.yaml",
    "hr/resume-screen/.GUARDRAILS.md.tmp",
];

const SKILL_DIRECTORIES: &[&str] = &[
    "hr",
    "hr/resume-screen",
    "hr/resume-screen/tests",
    "hr/resume-screen/tests/generated",
    "hr/resume-screen/examples",
    "hr/resume-screen/fixtures",
];

/// Every command that reads or writes below the workspace; the last word of a hook is its event.
const COMMANDS: &[&str] = &[
    "hook failure",
    "hook end",
    "learn session.jsonl",
    "record failure --code x --error boom",
    "record success --code y --output fine",
    "run hr/resume-screen --input fixtures/sample_input.json",
    "correct hr/resume-screen --execution-id latest --correction Always-put-Zebras-first",
    "accept latest",
    "reject latest",
    "memory status",
    "memory list reflexions",
    "memory list procedures",
    "memory search Quokka",
    "memory prompt hr/resume-screen",
    "memory add --type brand_memory --content Zebras-are-striped",
    "memory show REFL-001",
    "memory why REFL-001",
    "memory approve PROC-001",
    "memory forget MEM-001",
    "memory undo",
    "memory audit",
    "memory audit verify",
    "memory prune",
    "review",
    "memory export --output -",
    "memory export --output out.jsonl",
    "memory import out.jsonl",
    "memory disable",
    "memory enable",
    "session start --step a",
    "session log latest --step a --action tool_call --status success",
    "session end latest",
    "test --allow-skipped",
    "index",
    "stats",
    "hint --error boom",
    "config show",
    "trust",
    "remote status",
    "init",
    "doctor",
    "doctor --repair",
    "memory purge --yes",
];

/// Those that touch most.
const FEW: &[&str] = &[
    "hook failure",
    "hook end",
    "correct hr/resume-screen --execution-id latest --correction Always-put-Zebras-first",
    "memory search Quokka",
    "memory add --type brand_memory --content Zebras-are-striped",
    "doctor --repair",
    "memory purge --yes",
];

/// Files that decide whether a command goes on: each of them is attacked alone, and so is each
/// directory.
const GATES: &[&str] = &[
    ".agentura/workspace.json",
    ".agentura/.lock",
    ".agentura/config.toml",
    ".agentura/primary.json",
    ".agentura/disabled",
    ".agentura",
    "skills",
    "skills/hr",
    "skills/hr/resume-screen",
    "skills/hr/resume-screen/SKILL.md",
];

/// Kinds of objects in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    /// A link to a file outside that reads as the one in its place did.
    File,
    /// A link to a name outside under which nothing lies.
    Missing,
    /// A link to a device that never ends.
    Zero,
    /// A link to a directory outside.
    Directory,
    /// A pipe that nobody writes to.
    Pipe,
    /// A directory, and not a link to one.
    OwnDirectory,
    /// Another name of a file outside.
    HardLink,
}

/// A workspace with one of everything, to be copied.
fn learnt() -> Workspace {
    let mut workspace = Workspace::sample();
    workspace.set("MEMCTL_TESTS_EXPORT", "true");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let session = root.join("fixtures/sessions/claude-code-stock.jsonl");
    fs::copy(session, workspace.root().join("session.jsonl")).unwrap();
    workspace.run(&["init"]).succeeds();
    let input = [
        "run",
        "hr/resume-screen",
        "--input",
        "fixtures/sample_input.json",
    ];
    workspace.run(&input).succeeds();
    let said = format!("Always put {OWN} first, never below 60.");
    let correct = [
        "correct", "hr/resume-screen", "--execution-id", "latest", "--correction", &said,
    ];
    workspace.run(&correct).succeeds();
    workspace.run(&["learn", "session.jsonl"]).succeeds();
    for content in [
        format!("The {OWN} smiles."),
        "Something to forget.".to_owned(),
    ] {
        add(&workspace, &content);
    }
    workspace.run(&["memory", "forget", "MEM-002"]).succeeds();
    workspace
        .run(&["session", "start", "--step", OWN])
        .succeeds();
    // The copies need not compute these vectors again.
    workspace.run(&["index"]).succeeds();
    workspace
}

fn add(workspace: &Workspace, content: &str) {
    let words = [
        "memory", "add", "--type", "brand_memory", "--content", content,
    ];
    workspace.run(&words).succeeds();
}

/// A copy of a workspace with objects under some of its names, beside files that are nobody's memory.
struct Attacked {
    workspace: Workspace,
    places: Vec<PathBuf>,
    object: Object,
}

impl Attacked {
    fn new(learnt: &Workspace, names: &[String], object: Object) -> Self {
        let mut workspace = Workspace::empty();
        workspace.set("MEMCTL_TESTS_EXPORT", "true");
        fs::remove_dir(workspace.root()).unwrap();
        copy(&learnt.root(), &workspace.root());
        let places = names.iter().map(|name| workspace.root().join(name));
        let attacked = Self {
            places: places.collect(),
            workspace,
            object,
        };
        for (number, place) in attacked.places.iter().enumerate() {
            attacked.put(number, place);
        }
        attacked
    }

    fn outside(&self) -> PathBuf {
        self.workspace.home().join("outside")
    }

    fn put(&self, number: usize, place: &Path) {
        let outside = self.outside().join(number.to_string());
        fs::create_dir_all(outside.join("directory")).unwrap();
        let text = fs::read_to_string(place).unwrap_or_default();
        let text = if text.contains(OWN) {
            text.replace(OWN, FOREIGN)
        } else {
            format!("---\nname: x\ndescription: {FOREIGN}\n---\n{FOREIGN}\n")
        };
        for name in ["file", "directory/file", "directory/SKILL.md"] {
            fs::write(outside.join(name), &text).unwrap();
        }
        fs::set_permissions(outside.join("file"), fs::Permissions::from_mode(0o755)).unwrap();
        if place.is_dir() {
            fs::remove_dir_all(place).unwrap();
        } else if place.symlink_metadata().is_ok() {
            fs::remove_file(place).unwrap();
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        self.link(&outside, place);
    }

    fn link(&self, outside: &Path, place: &Path) {
        match self.object {
            Object::File => symlink(outside.join("file"), place).unwrap(),
            Object::Missing => symlink(outside.join("missing"), place).unwrap(),
            Object::Zero => symlink("/dev/zero", place).unwrap(),
            Object::Directory => symlink(outside.join("directory"), place).unwrap(),
            Object::Pipe => {
                let made = Command::new("mkfifo").arg(place).status().unwrap();
                assert!(made.success());
            }
            Object::OwnDirectory => fs::create_dir_all(place.join("inner")).unwrap(),
            Object::HardLink => fs::hard_link(outside.join("file"), place).unwrap(),
        }
    }

    /// Some commands take an object away, which is well; the next one meets it again.
    fn put_back(&self) {
        for (number, place) in self.places.iter().enumerate() {
            let is_possible = place.parent().is_some_and(Path::is_dir);
            if place.symlink_metadata().is_err() && is_possible {
                self.link(&self.outside().join(number.to_string()), place);
            }
        }
    }

    /// Runs a command within bounds that nothing reasonable meets.
    fn run(&self, words: &str) -> Ran {
        let (words, event) = match words {
            "hook failure" => ("hook claude-code", failure(&self.workspace)),
            "hook end" => ("hook claude-code", ended(&self.workspace)),
            words => (words, String::new()),
        };
        let event_file = self.workspace.home().join("event.json");
        fs::write(&event_file, event).unwrap();
        let template = self.workspace.command();
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", SECONDS, "sh", "-c"])
            .arg(format!("ulimit -v {KILOBYTES}; exec \"$0\" \"$@\""))
            .arg(template.get_program())
            .args(words.split(' '))
            .current_dir(self.workspace.root())
            .env_clear()
            .stdin(Stdio::from(fs::File::open(&event_file).unwrap()));
        for (name, value) in template.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        Ran::of(command.output().unwrap())
    }
}

fn failure(workspace: &Workspace) -> String {
    json!({"hook_event_name": "PostToolUseFailure", "session_id": "a", "cwd": workspace.root(),
        "transcript_path": "/nowhere.jsonl", "tool_name": "Bash",
        "tool_input": {"command": "git push"},
        "error": "Exit code 1\nfatal: No configured push destination.", "is_interrupt": false})
    .to_string()
}

fn ended(workspace: &Workspace) -> String {
    json!({"hook_event_name": "SessionEnd", "session_id": "b", "reason": "other",
        "cwd": workspace.root(), "transcript_path": workspace.root().join("session.jsonl")})
    .to_string()
}

/// Name, mode, time of change and content of everything below a directory.
fn snapshot(directory: &Path) -> Vec<(PathBuf, u32, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let content = fs::read(&path).unwrap_or_default();
        let times = (about.mtime(), about.mtime_nsec());
        found.push((path.clone(), about.mode(), times.0, times.1, content));
        if about.is_dir() {
            found.extend(snapshot(&path));
        }
    }
    found.sort();
    found
}

/// Attacks names with an object, so many at once, and runs the commands one after the other. Answers
/// what came of it that must not.
fn attack(names: &[String], at_once: usize, object: Object, commands: &[&str]) -> Vec<String> {
    let directories = directories();
    let is_gate = |name: &&String| GATES.contains(&name.as_str()) || directories.contains(name);
    let alone: Vec<String> = names.iter().filter(is_gate).cloned().collect();
    let others: Vec<String> = names
        .iter()
        .filter(|name| !is_gate(name))
        .cloned()
        .collect();
    let groups: Vec<&[String]> = alone.chunks(1).chain(others.chunks(at_once)).collect();
    let learnt = learnt();
    let next = AtomicUsize::new(0);
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some(names) = groups.get(number) else {
                        break;
                    };
                    // A third of all commands for each gate, another third for the next one.
                    let is_few = commands.len() == FEW.len() || number >= alone.len();
                    let (first, step) = if is_few { (0, 1) } else { (number % 3, 3) };
                    let commands: Vec<&str> =
                        commands.iter().skip(first).step_by(step).copied().collect();
                    let found = attack_one(&learnt, names, object, &commands);
                    broken.lock().unwrap().extend(found);
                }
            });
        }
    });
    broken.into_inner().unwrap()
}

fn attack_one(
    learnt: &Workspace,
    names: &[String],
    object: Object,
    commands: &[&str],
) -> Vec<String> {
    let attacked = Attacked::new(learnt, names, object);
    let before = snapshot(&attacked.outside());
    let mut broken = Vec::new();
    for words in commands {
        let ran = attacked.run(words);
        let mut say = |what: &str| broken.push(format!("{object:?} {names:?}: {words}: {what}"));
        if !(0..=6).contains(&ran.code) {
            say(&format!("ended with {}: {}", ran.code, ran.stderr));
        }
        // A second name of a file is that file: it may be read, and not written.
        let is_shown = ran.stdout.contains(FOREIGN) || ran.stderr.contains(FOREIGN);
        if is_shown && object != Object::HardLink {
            say(&format!("shows what lies outside: {ran:?}"));
        }
        if words.starts_with("hook") && (ran.code, ran.stderr.as_str()) != (0, "") {
            say(&format!("is not silent: {ran:?}"));
        }
        if snapshot(&attacked.outside()) != before {
            say("changed what lies outside");
            break;
        }
        attacked.put_back();
    }
    broken
}

fn files() -> Vec<String> {
    let kinds = memctl::model::Kind::ALL
        .into_iter()
        .map(memctl::model::Kind::file);
    let memory = MEMORY.iter().copied().chain(kinds);
    let memory = memory.map(|name| format!(".agentura/{name}"));
    let skills = SKILLS.iter().map(|name| format!("skills/{name}"));
    memory
        .chain(skills)
        .chain(["WORKSPACE.md".to_owned()])
        .collect()
}

fn directories() -> Vec<String> {
    let memory = MEMORY_DIRECTORIES
        .iter()
        .map(|name| format!(".agentura/{name}"));
    let skills = SKILL_DIRECTORIES
        .iter()
        .map(|name| format!("skills/{name}"));
    memory.chain(skills).collect()
}

fn all() -> Vec<String> {
    let roots = [".agentura".to_owned(), "skills".to_owned()];
    files()
        .into_iter()
        .chain(directories())
        .chain(roots)
        .collect()
}

#[track_caller]
fn holds(broken: &[String]) {
    assert!(
        broken.is_empty(),
        "{} breaches:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

/// The commands do what they are for where nothing is wrong, so that the attacks meet their reads and
/// writes.
#[test]
fn every_command_of_the_attacks_works() {
    let sound = Attacked {
        workspace: learnt(),
        places: Vec::new(),
        object: Object::File,
    };
    for words in COMMANDS {
        let ran = sound.run(words);
        // No database is named here.
        let expected = if *words == "remote status" { 2 } else { 0 };
        assert_eq!(ran.code, expected, "{words}: {ran:?}");
    }
}

#[test]
fn links_to_files_outside_are_neither_read_nor_written() {
    holds(&attack(&files(), 3, Object::File, FEW));
}

#[test]
fn no_command_follows_a_link_to_a_file_outside() {
    holds(&attack(&files(), 12, Object::File, COMMANDS));
}

#[test]
fn links_to_missing_files_outside_make_none() {
    holds(&attack(&all(), 8, Object::Missing, FEW));
}

#[test]
fn no_command_makes_a_file_through_a_link() {
    holds(&attack(&files(), 16, Object::Missing, COMMANDS));
}

#[test]
fn links_to_directories_outside_lead_nowhere() {
    holds(&attack(&all(), 8, Object::Directory, FEW));
}

#[test]
fn endless_devices_are_not_read() {
    holds(&attack(&files(), 8, Object::Zero, FEW));
}

#[test]
fn pipes_are_not_waited_for() {
    holds(&attack(&all(), 8, Object::Pipe, FEW));
}

#[test]
fn directories_in_the_places_of_files_end_in_errors() {
    holds(&attack(&files(), 8, Object::OwnDirectory, FEW));
}

#[test]
fn files_with_another_name_are_not_written_in_place() {
    holds(&attack(&files(), 8, Object::HardLink, FEW));
}

fn git(directory: &Path, arguments: &[&str]) {
    let ran = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
}

/// A repository that was cloned by git turns the temporary file of a data file into a hook of git,
/// and the data file into its program.
#[test]
fn a_clone_gets_no_hook_of_git_written() {
    let author = learnt();
    let fixes = author.read(".agentura/procedural_memory.local.json");
    // As a program of the shell, the first line of the file starts another one.
    let program = fixes.replacen('{', "{\"note\": \"$(touch executed)\",", 1);
    author.write(".agentura/procedural_memory.local.json", program);
    let fixes = author.memory("procedural_memory.local.json");
    fs::set_permissions(&fixes, fs::Permissions::from_mode(0o755)).unwrap();
    for name in [".procedural_memory.local.json.tmp", ".fix.tmp"] {
        symlink("../.git/hooks/post-commit", author.memory(name)).unwrap();
    }
    git(&author.root(), &["init", "-q"]);
    git(&author.root(), &["add", "--force", "."]);
    git(&author.root(), &["commit", "-q", "-m", "all"]);

    let user = Workspace::empty();
    let clone = user.root().join("clone");
    let source = author.root().display().to_string();
    git(&user.root(), &["clone", "-q", &source, "clone"]);
    fs::create_dir_all(clone.join(".git/hooks")).unwrap();
    let fixes = clone.join(".agentura/procedural_memory.local.json");
    assert_eq!(fs::metadata(&fixes).unwrap().mode() & 0o111, 0o111);
    let before = fs::read(&fixes).unwrap();
    let event = |event: serde_json::Value| {
        let file = user.write("event.json", event.to_string());
        let mut command = user.command();
        command
            .args(["hook", "claude-code"])
            .current_dir(&clone)
            .stdin(Stdio::from(fs::File::open(file).unwrap()));
        assert_eq!(Ran::of(command.output().unwrap()).code, 0);
    };
    let base = json!({"session_id": "a", "cwd": clone, "transcript_path": "/nowhere.jsonl",
        "tool_name": "Bash"});
    let with = |more: serde_json::Value| {
        let mut event = base.clone();
        for (name, value) in more.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    };
    event(with(json!({"hook_event_name": "PostToolUseFailure",
        "tool_input": {"command": "git push"},
        "error": "Exit code 1\nfatal: No configured push destination."})));
    event(with(json!({"hook_event_name": "PostToolUse",
        "tool_input": {"command": "git push -u origin main"},
        "tool_response": {"stdout": "done", "stderr": "", "interrupted": false}})));
    event(with(
        json!({"hook_event_name": "SessionEnd", "reason": "other"}),
    ));
    let commits = || {
        git(&clone, &["commit", "-q", "--allow-empty", "-m", "next"]);
        let executed = clone.join("executed").exists();
        assert!(!executed, "the data file was executed");
        assert!(!clone.join(".git/hooks/post-commit").exists());
    };
    commits();
    // Whatever the events have left as it was, this writes the file anew.
    let mut approve = user.command();
    approve
        .current_dir(&clone)
        .args(["memory", "approve", "PROC-001"]);
    let approve = Ran::of(approve.output().unwrap());
    assert_eq!(approve.code, 0, "{approve:?}");
    assert_ne!(fs::read(&fixes).unwrap(), before);
    assert_eq!(fs::metadata(&fixes).unwrap().mode() & 0o777, 0o600);
    commits();
}

#[test]
fn a_linked_memory_is_refused_by_name_and_an_own_one_may_be_named() {
    let elsewhere = learnt();
    let mut workspace = Workspace::empty();
    symlink(elsewhere.memory(""), workspace.root().join(".agentura")).unwrap();
    let before = snapshot(&elsewhere.root());
    for arguments in [
        &["memory", "status"][..],
        &["memory", "list", "procedures"],
        &["doctor"],
        &["trust"],
        &["memory", "add", "--type", "brand_memory", "--content", "x"],
        &["init"],
    ] {
        let ran = workspace.run(arguments);
        ran.fails(3, ".agentura` is a symbolic link")
            .fails(3, "hint: ");
    }
    let attacked = Attacked {
        places: Vec::new(),
        workspace: std::mem::replace(&mut workspace, Workspace::empty()),
        object: Object::Directory,
    };
    for words in ["hook failure", "hook end"] {
        let ran = attacked.run(words);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "", "")
        );
    }
    assert_eq!(snapshot(&elsewhere.root()), before);
    // What the user names may be reached through a link.
    let link = workspace.home().join("memory");
    symlink(elsewhere.root().join(".agentura"), &link).unwrap();
    workspace.set("AGENTURA_KNOWLEDGE_DIR", link.to_str().unwrap());
    let found = workspace.json(&["memory", "search", OWN]);
    assert!(found.to_string().contains("smiles"), "{found}");
}

#[test]
fn a_linked_skills_directory_is_refused_and_an_own_one_may_be_named() {
    let elsewhere = Workspace::sample();
    let mut workspace = Workspace::empty();
    symlink(
        elsewhere.root().join("skills"),
        workspace.root().join("skills"),
    )
    .unwrap();
    let prompt = ["memory", "prompt", "hr/resume-screen"];
    workspace
        .run(&prompt)
        .fails(3, "skills` is a symbolic link");
    let link = workspace.root().join("skills");
    workspace.set("AGENTURA_SKILLS_DIR", link.to_str().unwrap());
    workspace.run(&prompt).succeeds();
}

#[test]
fn doctor_names_what_is_left_alone() {
    let workspace = learnt();
    symlink(
        "/etc/passwd",
        workspace.memory(".procedural_memory.json.tmp"),
    )
    .unwrap();
    fs::create_dir_all(workspace.memory("remote")).unwrap();
    symlink("elsewhere", workspace.memory("remote/other")).unwrap();
    fs::hard_link(
        workspace.memory("procedural_memory.local.json"),
        workspace.home().join("second"),
    )
    .unwrap();
    let skill = workspace.root().join("skills/hr/resume-screen");
    symlink("SKILL.md", skill.join("DOMAIN.md")).unwrap();
    let report = workspace.json_of(&["doctor"]);
    assert_eq!(report["healthy"], false);
    let found = report["irregular"].to_string();
    for name in [
        ".procedural_memory.json.tmp",
        "remote/other",
        "procedural_memory.local.json",
        "DOMAIN.md",
    ] {
        assert!(found.contains(&format!("{name}` is a ")), "{name}: {found}");
    }
    assert_eq!(report["irregular"].as_array().unwrap().len(), 4, "{found}");
    workspace.run(&["doctor"]).fails(1, "");
}

#[test]
fn files_and_the_directory_become_private() {
    let workspace = learnt();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let memory = workspace.memory("");
    let names = [
        "procedural_memory.local.json",
        "memories.json",
        "audit.jsonl",
        ".lock",
    ];
    for name in names {
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(workspace.memory(name), open).unwrap();
    }
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o755)).unwrap();
    add(&workspace, "A new one.");
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    for name in names {
        assert_eq!(mode(&workspace.memory(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&memory), 0o700);
}

#[test]
fn killed_writers_leave_nothing_for_good() {
    let workspace = learnt();
    let random = "0123456789abcdef0123456789abcdef";
    let stale = workspace.memory(&format!(".procedural_memory.json.{random}.tmp"));
    let fresh = workspace.memory(&format!(".memories.json.{random}.tmp"));
    let link = workspace.memory(&format!(".audit.jsonl.{random}.tmp"));
    let outside = workspace.home().join("outside");
    for path in [&stale, &fresh, &outside] {
        fs::write(path, "half").unwrap();
    }
    symlink(&outside, &link).unwrap();
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    for path in [&stale, &outside] {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(hour_ago)
            .unwrap();
    }
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    assert!(!stale.exists());
    assert!(fresh.exists(), "its writer may still be at work");
    assert!(outside.exists() && link.symlink_metadata().is_ok());
}

#[test]
fn exports_replace_nothing_but_files() {
    let workspace = learnt();
    let pipe = workspace.root().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    symlink("/dev/null", workspace.root().join("device.jsonl")).unwrap();
    fs::create_dir(workspace.root().join("directory")).unwrap();
    let kind = |path: &Path| fs::symlink_metadata(path).unwrap().file_type();
    let kinds =
        || ["pipe", "device.jsonl", "directory"].map(|name| kind(&workspace.root().join(name)));
    let before = kinds();
    for name in ["pipe", "device.jsonl", "directory", "/dev/null"] {
        for force in [&[][..], &["--force"]] {
            let mut arguments = vec!["memory", "export", "--output", name];
            arguments.extend(force);
            let ran = workspace.run(&arguments);
            ran.fails(2, name).fails(2, "hint: ");
        }
        let ran = workspace.run(&["stats", "--html", name]);
        assert_ne!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(kinds(), before);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    workspace
        .run(&["memory", "export", "--output", "new.jsonl"])
        .succeeds();
}
