//! Segments are read as they were built and merged, and damage is noticed.

use super::*;
use crate::segment::Admission;
use proptest::prelude::*;

fn attributes(key: u64) -> Attributes {
    Attributes {
        key,
        created: -5,
        expires: i64::MAX,
        skill: 7,
        domain: 8,
        user: 9,
        kind: 2,
        trust: 1,
        note: 0,
    }
}

fn build(texts: &[String], first: u64) -> Vec<u8> {
    let mut builder = Builder::default();
    for (key, text) in (first..).zip(texts) {
        builder.add(&attributes(key), text);
    }
    builder.segment()
}

/// All postings, as text.
fn dump(bytes: &[u8]) -> Vec<String> {
    let segment = Segment::open(bytes).unwrap();
    let of_term = |term| {
        let name = String::from_utf8_lossy(segment.name(term)).into_owned();
        let postings = segment.postings(term).unwrap();
        postings.map(move |p| format!("{name} {} {}", p.document, p.count))
    };
    (0..segment.terms()).flat_map(of_term).collect()
}

#[test]
fn a_segment_gives_back_what_was_put_in() {
    let texts = ["disk full disk", "", "memory full"].map(str::to_owned);
    let bytes = build(&texts, 10);
    assert_eq!(
        dump(&bytes),
        ["disk 0 2", "full 0 1", "full 2 1", "memori 2 1"]
    );
    let segment = Segment::open(&bytes).unwrap();
    assert_eq!((segment.len(), segment.words()), (3, 5));
    assert_eq!(segment.attributes(2), attributes(12));
    assert_eq!([0, 1, 2].map(|i| segment.length(i)), [3, 0, 2]);
    assert!(segment.find("disk").unwrap().is_some());
    assert!(segment.find("disc").unwrap().is_none());
    assert!(Segment::open(&Builder::default().segment()).is_some());
}

/// A long text with one word in its middle, and one at both ends.
fn long() -> String {
    let filling = |range: std::ops::Range<usize>| {
        let words: Vec<String> = range.map(|n| format!("filling{n}")).collect();
        words.join(" ")
    };
    format!("edge {} middle {} edge", filling(0..100), filling(100..200))
}

#[test]
fn a_long_document_says_which_windows_hold_a_word() {
    let bytes = build(&["edge".to_owned(), long()], 0);
    let segment = Segment::open(&bytes).unwrap();
    let postings = |word| -> Vec<Posting> { segment.find(word).unwrap().unwrap().collect() };
    let windows = postings("edg")
        .iter()
        .map(|p| p.windows)
        .collect::<Vec<_>>();
    let last = windows[1].ilog2();
    assert_eq!(windows, [0, 1 | 1 << last]);
    assert_eq!(segment.length(1).div_ceil(32) - 1, last);
    let middle = postings("middl")[0];
    assert_eq!((middle.document, middle.count), (1, 1));
    assert_eq!(middle.windows, 1 << (last / 2));

    let merged = merge(&[(segment, &[false, true])]).unwrap();
    let merged = Segment::open(&merged).unwrap();
    let moved = merged.find("edg").unwrap().unwrap().next().unwrap();
    assert_eq!((moved.document, moved.windows), (0, windows[1]));
}

#[test]
fn the_first_to_expire_is_known_without_asking_each() {
    let mut builder = Builder::default();
    for expires in [i64::MAX, 50, 90] {
        builder.add(
            &Attributes {
                expires,
                ..attributes(1)
            },
            "text",
        );
    }
    let bytes = builder.segment();
    let segment = Segment::open(&bytes).unwrap();
    let at = |now| Admission {
        now,
        ..Admission::default()
    };
    assert_eq!(
        [49, 50].map(|now| segment.admits_all(&at(now))),
        [true, false]
    );
}

#[test]
fn damage_is_noticed_before_it_answers() {
    let bytes = build(&["disk full disk".to_owned(), "memory".to_owned()], 0);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let Some(segment) = Segment::open(&damaged) else {
            continue;
        };
        for word in ["disk", "full", "memori"] {
            assert!(!matches!(segment.find(word), Ok(None)), "{word} {at}");
        }
        assert!(!matches!(segment.find("disc"), Ok(Some(_))), "{at}");
        let broken = (0..segment.terms()).any(|term| segment.postings(term).is_err());
        assert!(broken || segment.verify().is_err(), "{at}");
        // Lengths and kinds of the two documents: all that a ranking without a filter reads.
        let ranks = (HEADER..HEADER + 2 * 5).contains(&at);
        assert_eq!(segment.verify_for_ranking().is_err(), ranks, "{at}");
    }
    for at in 0..bytes.len() {
        assert!(Segment::open(&bytes[..at]).is_none(), "{at}");
    }
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("([abc]{1,2} ){0,6}", 0..12)
}

proptest! {
    #[test]
    fn merged_segments_are_as_if_made_at_once(a in texts(), b in texts(), mask in any::<u32>()) {
        let retained: Vec<bool> = (0..a.len() + b.len()).map(|i| mask >> i & 1 == 1).collect();
        let (first, second) = (build(&a, 0), build(&b, a.len() as u64));
        let merged = merge(&[
            (Segment::open(&first).unwrap(), &retained[..a.len()]),
            (Segment::open(&second).unwrap(), &retained[a.len()..]),
        ]).unwrap();
        let mut at_once = Builder::default();
        for ((key, text), retained) in (0..).zip(a.iter().chain(&b)).zip(&retained) {
            if *retained {
                at_once.add(&attributes(key), text);
            }
        }
        prop_assert_eq!(merged, at_once.segment());
    }

    #[test]
    fn no_bytes_bring_a_segment_to_a_stop(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..400, byte in any::<u8>()) {
        let mut whole = build(&["a b".to_owned(), "b c".to_owned()], 0);
        let at = at % whole.len();
        whole[at] = byte;
        for bytes in [&bytes, &whole] {
            if let Some(segment) = Segment::open(bytes) {
                drop(merge(&[(segment, &vec![true; segment.len()])]));
                let _count = segment.find("b").map(|found| found.map(Iterator::count));
            }
        }
    }
}
