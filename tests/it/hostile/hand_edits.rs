//! Editors and the Python memory save the data files while the program writes them: neither takes the lock.
//!
//! Each edit says what it read, so that the books can be balanced exactly. A record of the program may
//! be missing only where an editor saved a copy from before it; an entry of an editor may be missing
//! never, but where a later save of the editor itself left it out.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{RUN_SCRIPTED, scripted};

const FILE: &str = "episodic_memory.json";

/// One save of an editor.
struct Save {
    /// The ids in the text that it had read.
    read: BTreeSet<String>,
    /// The id that it added.
    added: String,
    /// How many records had been acknowledged when it was done.
    acknowledged: usize,
}

fn ids(text: &[u8]) -> Option<Vec<String>> {
    let file: Value = serde_json::from_slice(text).ok()?;
    let id = |entry: &Value| entry["execution_id"].as_str().unwrap().to_owned();
    Some(file["entries"].as_array()?.iter().map(id).collect())
}

/// Reads the file, adds an entry and saves all of it.
fn edit(path: &Path, number: u64, in_place: bool, pause: Duration) -> Option<Save> {
    let text = fs::read(path).ok()?;
    let read: BTreeSet<String> = ids(&text)?.into_iter().collect();
    let mut file: Value = serde_json::from_slice(&text).ok()?;
    let added = format!("EXEC-{}", 1_000_000_000_000_000 + number);
    let entry = json!({"execution_id": added, "skill": "hr/resume-screen", "output_summary": {}});
    file["entries"].as_array_mut()?.push(entry);
    let text = serde_json::to_vec_pretty(&file).unwrap();
    std::thread::sleep(pause);
    if in_place {
        fs::write(path, &text).unwrap();
    } else {
        let beside = path.with_extension("json.edit");
        let mut file = fs::File::create(&beside).unwrap();
        file.write_all(&text).unwrap();
        fs::rename(&beside, path).unwrap();
    }
    Some(Save {
        read,
        added,
        acknowledged: 0,
    })
}

fn check(in_place: bool, trials: u64) {
    let workspace = scripted();
    workspace.json(&RUN_SCRIPTED);
    let path = workspace.memory(FILE);
    let start = Instant::now();
    workspace.json(&RUN_SCRIPTED);
    // One save a trial, at any moment of it.
    let span = u64::try_from(start.elapsed().as_micros()).unwrap() * 5 / 4;
    // Ids in the order of their acknowledgement.
    let acknowledged = Mutex::new(Vec::<String>::new());
    let (begin, trials_begun) = mpsc::channel();
    let (saves, refused) = std::thread::scope(|scope| {
        let (acknowledged, path) = (&acknowledged, &path);
        let editor = scope.spawn(move || {
            let mut saves = Vec::new();
            let mut random = 88_172_645_463_325_252_u64;
            for number in trials_begun {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                std::thread::sleep(Duration::from_micros(random % span));
                // Most editors read long before they save; a program reads right before.
                let pause = Duration::from_micros((random >> 20) % 3 * 400);
                if let Some(mut save) = edit(path, number, in_place, pause) {
                    save.acknowledged = acknowledged.lock().unwrap().len();
                    saves.push(save);
                }
            }
            saves
        });
        let mut refused = 0;
        for trial in 0..trials {
            begin.send(trial).unwrap();
            if trial % 4 == 3 {
                // The record may be one that the editor has just taken away.
                let ran = workspace.run(&["reject", "latest", "--reason", "no", "--json"]);
                assert!(matches!(ran.code, 0 | 2 | 3), "{ran:?}");
                continue;
            }
            let ran = workspace.run(&[&RUN_SCRIPTED[..], &["--json"]].concat());
            if ran.code == 0 {
                let id = ran.document()["execution_id"].as_str().unwrap().to_owned();
                acknowledged.lock().unwrap().push(id);
            } else {
                assert_eq!(ran.code, 3, "{ran:?}");
                let error = ran.document()["error"].to_string();
                assert!(
                    error.contains("is being changed by another program"),
                    "{ran:?}"
                );
                refused += 1;
            }
        }
        drop(begin);
        (editor.join().unwrap(), refused)
    });
    let text = fs::read(&path).unwrap();
    let stored = ids(&text).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&text)));
    let set: BTreeSet<String> = stored.iter().cloned().collect();
    assert_eq!(set.len(), stored.len(), "an id stands there twice");
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(
        acknowledged.len() as u64 > trials / 2,
        "{} of {trials}, {refused} refused",
        acknowledged.len()
    );
    for (place, id) in acknowledged.iter().enumerate() {
        // An editor that had not read it and saved after it was written has removed it.
        let removed = saves
            .iter()
            .any(|save| !save.read.contains(id) && save.acknowledged >= place);
        assert!(
            set.contains(id) || removed,
            "{id} was acknowledged and is gone"
        );
    }
    for (place, save) in saves.iter().enumerate() {
        let removed = saves[place + 1..]
            .iter()
            .any(|later| !later.read.contains(&save.added));
        assert!(
            set.contains(&save.added) || removed,
            "{} was saved and is gone",
            save.added
        );
    }
    workspace.run(&["doctor"]).succeeds();
    // The answer of a run that was refused is kept there.
    assert_eq!(workspace.memory("recovered").exists(), refused > 0);
}

#[test]
fn renamed_file_of_an_editor_and_acknowledged_writes_both_stay() {
    check(false, 220);
}

#[test]
fn in_place_write_of_an_editor_and_acknowledged_writes_both_stay() {
    check(true, 220);
}
