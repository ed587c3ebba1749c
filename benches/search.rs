//! The search at every size, as cold processes.
//!
//! `make bench-search` runs it and prints the table of `docs/benchmarks.md`; sizes may be named:
//! `cargo bench --bench search -- 10000 100000`. Every figure is a median over different queries. The
//! notes are made here: 40 words each, drawn from 60,000 the way words are in language, so that some
//! stand in half of the notes and most in a few. The words are indexed as a user would, with
//! `memctl index --keyword`. The vectors are made up, of the right form and at random: real ones for a million
//! notes take two hours, and comparing them takes as long whatever they say. How fast real ones are made
//! is measured apart.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the benchmark makes the files that it measures"
)]

mod measure;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use measure::{cold, memctl, ms, run};
use memctl_search::embedder::{DIMENSIONS, EMBEDDER, Embedding};
use memctl_search::{slot, slots_header};
use serde_json::Value;

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const PROCESSES: usize = 15;
const VOCABULARY: u64 = 60_000;
const WORDS: usize = 40;
/// Seconds that the reference needs for its search at 100,000 executions on the same class of machine; by
/// words alone, in a server that has been started already.
const REFERENCE: f64 = 4.10;

fn main() {
    let named: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let sizes = if named.is_empty() {
        SIZES.to_vec()
    } else {
        named
    };
    let dir = tempfile::tempdir().unwrap();
    vectors_a_second(&dir.path().join("vectors"));
    let one = dir.path().join("one");
    notes(&one, 1, |_| "the only note".to_owned());
    run(memctl(&one, &["index"]));
    println!("\n| notes | command | median | peak memory | index on disk | reference |");
    println!("|---|---|---|---|---|---|");
    // Start of a process, the model, and the vector of a query: what no index can save.
    row(&one, 1, "search", &[]);
    let mut rates = Vec::new();
    for size in sizes {
        let root = dir.path().join(size.to_string());
        generate(&root, size);
        let took = run(memctl(&root, &["index", "--keyword"]));
        let took = took.time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        rates.push((size, size as f64 / took));
        row(&root, size, "search --keyword", &["--keyword"]);
        make_up_vectors(&root);
        row(&root, size, "search", &[]);
        append_and_search(&root, size);
        fs::remove_dir_all(&root).unwrap();
    }
    println!();
    for (size, rate) in rates {
        println!("Words of {size} notes: {rate:.0} notes a second, reading the file included.");
    }
}

fn row(root: &Path, size: usize, name: &str, more: &[&str]) {
    let mut round = 0;
    let (time, memory) = cold(PROCESSES, &mut || {
        round += 1;
        let query = query(round);
        memctl(
            root,
            &[&["memory", "search", &query, "--json"], more].concat(),
        )
    });
    let reference = if size == 100_000 {
        format!("{REFERENCE:.2} s")
    } else {
        String::new()
    };
    let index = fs::read_dir(root.join(".agentura/.index/search")).unwrap();
    let bytes: u64 = index
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    println!(
        "| {size} | `{name}` | {} | {memory:.0} MB | {} MB | {reference} |",
        ms(time),
        bytes / 1_000_000
    );
}

/// A search right after a note was added.
fn append_and_search(root: &Path, size: usize) {
    let path = root.join(".agentura/corrections.json");
    let mut round = 0;
    let (time, memory) = cold(PROCESSES, &mut || {
        round += 1;
        let text = format!(
            "{{\"corrections\": [{{\"correction_id\": \"CORR-1\", \"skill\": \"hr/x\", \"user_correction\": \"added{round}\"}}]}}"
        );
        fs::write(&path, text).unwrap();
        let query = format!("added{round}");
        memctl(root, &["memory", "search", &query, "--keyword", "--json"])
    });
    println!(
        "| {size} | `search --keyword`, after a change | {} | {memory:.0} MB | | |",
        ms(time)
    );
}

/// How fast real vectors are made: a thousand texts of 64 tokens.
fn vectors_a_second(root: &Path) {
    let sentence = "When the release is delayed by a failing check, tell the owner of the service first, then \
        note the reason in the calendar, move the window by one working day, ask for the approval again, and keep \
        the old build until the new one has been seen to answer in both regions without an error";
    notes(root, 1_000, |i| format!("{sentence} {i}"));
    run(memctl(root, &["index", "--keyword"]));
    let used = run(memctl(root, &["index"]));
    println!(
        "Vectors: {:.0} notes of about 64 tokens a second, {:.0} a second and core.",
        1_000.0 / used.time.as_secs_f64(),
        1_000.0 / used.cpu.as_secs_f64()
    );
}

/// Makes a workspace with so many notes.
fn generate(root: &Path, size: usize) {
    let mut random = Random(42);
    notes(root, size, |_| {
        let words: Vec<String> = (0..WORDS).map(|_| word(random.word())).collect();
        words.join(" ")
    });
}

fn notes(root: &Path, size: usize, mut text: impl FnMut(usize) -> String) {
    let memory = root.join(".agentura");
    fs::create_dir_all(&memory).unwrap();
    let mut out = BufWriter::new(File::create(memory.join("memories.json")).unwrap());
    write!(out, "{{\n  \"entries\": [").unwrap();
    for i in 0..size {
        let comma = if i == 0 { "" } else { "," };
        let text = text(i);
        write!(
            out,
            "{comma}\n    {{\"id\": \"MEM-{i}\", \"memory_type\": \"task_memory\", \"content\": \"{text}\", \"metadata\": {{}}, \"created_at\": \"2026-01-01T00:00:00Z\"}}"
        )
        .unwrap();
    }
    write!(out, "\n  ]\n}}").unwrap();
    out.flush().unwrap();
}

/// Gives every note a vector of length 1 in a direction of its own.
fn make_up_vectors(root: &Path) {
    let index = root.join(".agentura/.index/search");
    let path = index.join("list.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut random = Random(7);
    let mut number = list["next"].as_u64().unwrap();
    for segment in list["segments"].as_array_mut().unwrap() {
        number += 1;
        let documents = usize::try_from(segment["documents"].as_u64().unwrap()).unwrap();
        let file = File::create(index.join(format!("{number}.vectors"))).unwrap();
        let mut out = BufWriter::new(file);
        let embedding = Embedding {
            name: EMBEDDER.to_owned(),
            dimensions: DIMENSIONS,
        };
        out.write_all(&slots_header(&embedding, documents)).unwrap();
        for _ in 0..documents {
            let vector: Vec<f32> = (0..DIMENSIONS).map(|_| random.around_zero()).collect();
            out.write_all(&slot(&vector)).unwrap();
        }
        out.flush().unwrap();
        segment["vectors"] =
            serde_json::json!({"file": number, "embedder": EMBEDDER, "filled": documents});
    }
    list["next"] = number.into();
    fs::write(&path, list.to_string()).unwrap();
}

/// Four words.
fn query(round: u64) -> String {
    let mut random = Random(round * 7_919);
    let words: Vec<String> = (0..4).map(|_| word(random.word())).collect();
    words.join(" ")
}

/// A small generator of numbers that are the same every time (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
    fn share(&mut self) -> f64 {
        (self.next() >> 40) as f64 / f64::from(1 << 24)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a direction needs no more")]
    fn around_zero(&mut self) -> f32 {
        (self.share() - 0.5) as f32
    }

    /// The number of a word: the lower, the commoner.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count"
    )]
    fn word(&mut self) -> u64 {
        // By Zipf's law the logarithm of the rank is spread evenly.
        (VOCABULARY as f64).powf(self.share()) as u64
    }
}

/// A word that looks like one: two to four syllables.
fn word(number: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu",
        "za",
    ];
    let mut left = number + 16;
    let mut word = String::new();
    while left > 0 {
        word.push_str(SYLLABLES[usize::try_from(left % 16).unwrap()]);
        left /= 16;
    }
    word
}
