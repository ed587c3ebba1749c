//! Ranking of documents with known words and vectors.

use super::*;
use crate::Rrf;
use crate::embedder::Embedding;
use crate::vectors::{Slots, slot, slots_header};

fn model() -> Embedding {
    Embedding {
        name: "model".to_owned(),
        dimensions: 2,
    }
}

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
            let mut slots = slots_header(&model(), texts.len()).to_vec();
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
        let layout = Box::leak(Box::new(segment.slot_layout()));
        let slots = Slots::open(slots.clone().leak(), &model(), layout);
        Part::new(segment, slots, None)
    };
    then(&Ranker::new(parts.iter().map(part).collect()))
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
fn excluded_document_affects_nothing() {
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
fn missing_vectors_are_computed_in_order_of_need() {
    let texts = [
        ("compliance", Some(1.0)),
        ("check compliance", None),
        ("old bread", None),
        ("new bread", None),
    ];
    let wanted = |limit| {
        with_ranker(&texts, |ranker| {
            let found = ranker.without_vector("compliance", limit).unwrap();
            let number = |(part, place): (usize, usize)| ranker.parts[part].start as usize + place;
            found.into_iter().map(number).collect::<Vec<_>>()
        })
    };
    assert_eq!(wanted(2), [1, 3]);
    assert_eq!(wanted(9), [1, 3, 2]);
    assert_eq!(wanted(0), [0; 0]);
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
