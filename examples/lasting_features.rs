//! Prints the features of texts for training: one text per line in, one JSON object per line out.

use std::io::{self, BufRead as _, BufWriter, Write as _};

use memctl::learn::lasting::features::Features;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let Features { buckets, cues } = Features::of(&line?);
        writeln!(
            out,
            "{}",
            serde_json::json!({"buckets": buckets, "cues": cues})
        )?;
    }
    out.flush()
}
