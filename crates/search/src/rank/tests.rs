//! Ranking of documents with known words and vectors.

use super::super::Rrf;
use super::super::attributes::Attributes;
use super::super::segment::Segment;
use super::super::segment_builder::Builder;
use super::super::vector::binary_vectors::{BinaryVectors, binary_vectors};
use super::super::vector::quantized_vectors::{slot, slots_header};
use super::super::vector::windows::SlotLayout;
use super::*;
use crate::Slots;
use proptest::prelude::*;

/// Unit vector at this angle in the plane of the first two axes.
fn at(degrees: f32) -> Vec<f32> {
    let (y, x) = degrees.to_radians().sin_cos();
    vec![x, y]
}

/// Ranker over texts with vector angles, split into two parts.
fn with_ranker<T>(texts: &[(&str, Option<f32>)], then: impl Fn(&Ranker<'_>) -> T) -> T {
    let parts: Vec<(Vec<u8>, Vec<u8>)> = texts
        .chunks(texts.len().div_ceil(2).max(1))
        .map(|texts| {
            let mut builder = Builder::default();
            let mut slots = slots_header("model", 2, texts.len()).to_vec();
            for (text, degrees) in texts {
                builder.add(&Attributes::default(), text);
                slots.extend(slot(&degrees.map_or(vec![0.0; 2], at)));
            }
            (builder.segment(), slots)
        })
        .collect();
    let part = |(segment, slots): &'_ (Vec<u8>, Vec<u8>)| {
        // Leaked, which avoids a lifetime in tests.
        let segment = Segment::open(segment.clone().leak()).unwrap();
        let layout = Box::leak(Box::new(SlotLayout::of(&segment)));
        let slots = Slots::open(slots.clone().leak(), "model", 2, layout);
        Part::new(segment, slots, None)
    };
    then(&Ranker::new(parts.iter().map(part).collect()))
}

/// Documents in groups, as real ones are; each group has a word of its own.
fn documents(count: usize) -> Vec<(String, Vec<f32>)> {
    let mut state = 9u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f32::from(u16::try_from(state >> 48).unwrap()) / 32_768.0 - 1.0
    };
    let mut vector = |about: &[f32]| {
        let mixed: Vec<f32> = about.iter().map(|x| x + random()).collect();
        let length = mixed.iter().map(|x| x * x).sum::<f32>().sqrt();
        mixed.into_iter().map(|x| x / length).collect::<Vec<f32>>()
    };
    let groups: Vec<Vec<f32>> = (0..40).map(|_| vector(&[0.0; 128])).collect();
    let document = |n: usize| {
        let about: Vec<f32> = groups[n % 40].iter().map(|x| x * 8.0).collect();
        (format!("group{} note{n}", n % 40), vector(&about))
    };
    (0..count).map(document).collect()
}

#[test]
fn estimates_change_no_result() {
    let documents = documents(12_000);
    let (first, second) = documents.split_at(7_000);
    let files = [first, second].map(|documents| {
        let mut builder = Builder::default();
        let mut slots = slots_header("model", 128, documents.len()).to_vec();
        for (text, vector) in documents {
            builder.add(&Attributes::default(), text);
            slots.extend(slot(vector));
        }
        (builder.segment(), slots)
    });
    let layouts = [first, second].map(|documents| SlotLayout::Single(documents.len()));
    let slots = |n: usize| Slots::open(&files[n].1, "model", 128, &layouts[n]).unwrap();
    let binary = [0, 1].map(|n| binary_vectors(&slots(n), "model", 128));
    let ranker = |with_binary: bool| {
        let part = |n: usize| {
            let segment = Segment::open(&files[n].0).unwrap();
            // Parts with and without binary vectors can be mixed.
            let open = || BinaryVectors::open(&binary[n], "model", 128, &layouts[n]).unwrap();
            Part::new(segment, Some(slots(n)), None).with_binary(with_binary.then(open))
        };
        Ranker::new(vec![part(0), part(1)])
    };
    let (exact, estimated) = (ranker(false), ranker(true));
    let fusions = [
        Fusion::Coverage,
        Fusion::Semantic,
        Fusion::Rrf(Rrf::default()),
    ];
    let (mut same, mut all) = (0, 0);
    for (n, (text, vector)) in documents.iter().enumerate().step_by(397) {
        let text = if n % 2 == 0 { text.as_str() } else { "" };
        for fusion in fusions {
            let question = Question {
                text,
                vector: Some(vector),
                fusion,
                floor: None,
                weak: false,
                limit: 10,
                weight: |_| 1.0,
            };
            let found = |ranker: &Ranker<'_>| -> Vec<(usize, Option<u32>)> {
                let hits = ranker.rank(&question).unwrap();
                let hit = |ranked: &Ranked| (ranked.document, ranked.cosine.map(f32::to_bits));
                hits.iter().map(hit).collect()
            };
            let (exact, estimated) = (found(&exact), found(&estimated));
            assert_eq!(exact.len(), 10);
            all += exact.len();
            same += exact.iter().filter(|hit| estimated.contains(hit)).count();
        }
    }
    assert!(same * 1000 >= all * 995, "{same} of {all}");
}

const TEXTS: &[(&str, Option<f32>)] = &[
    ("verify regulatory requirements", Some(10.0)),
    ("check compliance", Some(20.0)),
    ("bake bread", Some(85.0)),
    ("compliance without a vector", None),
];

fn rank(query: &str, vector: Option<&[f32]>, fusion: Fusion) -> Vec<Ranked> {
    let question = Question {
        text: query,
        vector,
        fusion,
        floor: None,
        weak: false,
        limit: 10,
        weight: |_| 1.0,
    };
    with_ranker(TEXTS, |ranker| ranker.rank(&question).unwrap())
}

fn order(fusion: Fusion, vector: Option<&[f32]>) -> Vec<usize> {
    let ranked = rank("compliance check", vector, fusion);
    ranked.iter().map(|hit| hit.document).collect()
}

#[test]
fn each_fusion_ranks_its_own_way_and_leaves_out_what_is_far() {
    let query = at(0.0);
    assert_eq!(order(Fusion::Coverage, Some(&query)), [1, 0, 3]);
    assert_eq!(order(Fusion::Keyword, Some(&query)), [1, 3]);
    assert_eq!(order(Fusion::Semantic, Some(&query)), [0, 1]);
    assert_eq!(order(Fusion::Rrf(Rrf::default()), Some(&query)), [1, 0, 3]);
    let foreign = rank("проверка соответствия", Some(&query), Fusion::Coverage);
    assert!(foreign.is_empty(), "{foreign:?}");
    for fusion in [Fusion::Coverage, Fusion::Semantic, Fusion::Keyword] {
        assert_eq!(order(fusion, None), [1, 3]);
    }
}

#[test]
fn a_passing_word_is_no_answer_where_the_meaning_is_another() {
    let query = "compliance of the yearly audit with foreign regulations of trade";
    let ranked = rank(query, Some(&at(100.0)), Fusion::Coverage);
    let found: Vec<usize> = ranked.iter().map(|hit| hit.document).collect();
    // A document without a vector can still match; bread matches by its vector alone.
    assert_eq!(found, [2, 3]);
}

#[test]
fn ranks_say_which_half_found_it() {
    let ranked = rank("compliance check", Some(&at(0.0)), Fusion::Coverage);
    let ranks: Vec<_> = ranked.iter().map(|r| (r.keyword, r.semantic)).collect();
    assert_eq!(
        ranks,
        [(Some(1), Some(2)), (None, Some(1)), (Some(2), None)]
    );
}

#[test]
fn what_is_not_admitted_has_no_part_in_anything() {
    let whole = with_ranker(&TEXTS[1..], |ranker| ranker.terms("compliance").unwrap());
    assert_eq!(whole, [("complianc".to_owned(), 2)]);
    let mut builder = Builder::default();
    for (text, _) in TEXTS {
        builder.add(&Attributes::default(), text);
    }
    let bytes = builder.segment();
    let segment = Segment::open(&bytes).unwrap();
    let some = Some(vec![true, true, true, false]);
    let question = Question {
        text: "compliance",
        vector: None,
        fusion: Fusion::Keyword,
        floor: None,
        weak: false,
        limit: 10,
        weight: |_| 1.0,
    };
    let part = Ranker::new(vec![Part::new(segment, None, some)]);
    let ranked = part.rank(&question).unwrap();
    let alone = with_ranker(&TEXTS[..3], |ranker| ranker.rank(&question).unwrap());
    assert_eq!(ranked, alone);
    assert_eq!(ranked.len(), 1);
}

#[test]
fn who_has_no_vector_gets_one_in_the_order_of_need() {
    let texts = [
        ("compliance", Some(1.0)),
        ("check compliance", None),
        ("old bread", None),
        ("new bread", None),
    ];
    let wanted = |limit| {
        with_ranker(&texts, |ranker| {
            ranker.without_vector("compliance", limit).unwrap()
        })
    };
    assert_eq!(wanted(2), [1, 3]);
    assert_eq!(wanted(9), [1, 3, 2]);
    assert_eq!(wanted(0), [0; 0]);
}

proptest! {
    #[test]
    fn the_leading_documents_of_each_part_rank_like_all(
        texts in prop::collection::vec((prop::collection::vec(0u8..6, 0..9), 0u8..9, prop::bool::weighted(0.9)), 1..400),
        asked in prop::collection::vec(0u8..8, 1..4),
        parts in 1usize..5,
        limit in 0usize..12,
    ) {
        let text = |words: &[u8]| {
            let words = words.iter().map(|n| format!("word{n}"));
            words.collect::<Vec<_>>().join(" ")
        };
        let query = text(&asked);
        let files: Vec<(Vec<u8>, Vec<bool>)> = texts
            .chunks(texts.len().div_ceil(parts))
            .map(|texts| {
                let mut builder = Builder::default();
                for (words, kind, _) in texts {
                    builder.add(&Attributes { kind: *kind, ..Attributes::default() }, &text(words));
                }
                (builder.segment(), texts.iter().map(|(_, _, admitted)| *admitted).collect())
            })
            .collect();
        let part = |(segment, admitted): &'_ (Vec<u8>, Vec<bool>)| {
            Part::new(Segment::open(segment.clone().leak()).unwrap(), None, Some(admitted.clone()))
        };
        let ranker = Ranker::new(files.iter().map(part).collect());
        let question = Question {
            text: &query,
            vector: None,
            fusion: Fusion::Keyword,
            floor: None,
            weak: false,
            limit,
            weight: |kind| match kind {
                1 => 1.5,
                2 => 0.5,
                _ => 1.0,
            },
        };
        let all = ranker.rank_with(&question, &ranker.by_words(&query).unwrap());
        prop_assert_eq!(ranker.rank(&question).unwrap(), all);
    }
}

#[test]
fn weak_matches_fill_the_results_after_all_others() {
    let ranked = |weak, limit| -> Vec<(usize, bool)> {
        let question = Question {
            text: "compliance check",
            vector: Some(&at(0.0)),
            fusion: Fusion::Coverage,
            floor: None,
            weak,
            limit,
            weight: |_| 1.0,
        };
        let ranked = with_ranker(TEXTS, |ranker| ranker.rank(&question).unwrap());
        let found = ranked.iter().map(|found| (found.document, found.weak));
        found.collect()
    };
    assert_eq!(ranked(false, 10), [(1, false), (0, false), (3, false)]);
    let all = [(1, false), (0, false), (3, false), (2, true)];
    assert_eq!(ranked(true, 10), all);
    assert_eq!(ranked(true, 3), all[..3]);
}
