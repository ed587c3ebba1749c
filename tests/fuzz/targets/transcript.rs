//! Any bytes as a session file, and whatever comes out of it as something to learn from.

use memctl::lessons::failure::{error_key, normalised};
use memctl::lessons::recovery::episodes::analyse;
use memctl::lessons::recovery::pattern::of_episode;
use memctl_sessions::{Format, read};

pub(crate) fn run(bytes: &[u8]) {
    for format in Format::ALL
        .map(|(format, _)| Some(format))
        .into_iter()
        .chain([None])
    {
        let mut input = bytes;
        let session = read(format, &mut input).unwrap();
        let (steps, remarks) = (session.steps, session.remarks);
        let mut broken = session.broken.iter();
        assert!(broken.all(|line| line.line <= bytes.len() as u64 + 1));
        assert!(steps.iter().enumerate().all(|(at, step)| step.index == at));
        let analysis = analyse(&steps, &remarks);
        for episode in analysis.episodes {
            assert!(episode.fail_step < episode.success_step);
            drop(of_episode(&episode, &steps));
        }
    }
    let text = String::from_utf8_lossy(bytes);
    if let Some(key) = error_key(&text) {
        drop(normalised(&key));
    }
}
