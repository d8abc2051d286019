//! Inputs for the entry points of fuzz targets, where no fuzzer runs: the committed corpus, and what a seed makes of it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use quic_common::Random;

/// The longest input that is made up.
const LONGEST: u64 = 600;

/// Calls `entry` with each input in the target's corpus, and with `count` more that are made from a fixed seed: changed
/// copies of those in the corpus, and bytes of several kinds.
///
/// # Panics
///
/// If `entry` does; the input is printed first. If the target has no corpus.
pub fn run(target: &str, count: usize, entry: fn(&[u8])) {
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "fuzz/corpus/{target} is empty");
    for input in &corpus {
        call(target, entry, input);
    }
    let mut random = Random::from_seed([42; 32]);
    for _ in 0..count {
        call(target, entry, &input(&mut random, &corpus));
    }
}

#[expect(clippy::print_stdout, reason = "the input of a failure")]
fn call(target: &str, entry: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| entry(input))) {
        println!("{target} fails with {input:?}");
        resume_unwind(panic);
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let directory = root.join("fuzz/corpus").join(target);
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn input(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = match random.below(4) {
        0 => (0..random.below(LONGEST)).map(|_| small(random)).collect(),
        1 => {
            let mut bytes = vec![0; place(random, 64)];
            random.fill(&mut bytes);
            bytes
        }
        _ => pick(random, corpus).to_vec(),
    };
    for _ in 0..random.below(4) {
        change(random, &mut input, corpus);
    }
    input
}

/// Turns bits over, cuts, inserts and joins.
fn change(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let at = place(random, input.len());
    match random.below(6) {
        0 => input.truncate(at),
        1 => input.insert(at, small(random)),
        2 => {
            let other = pick(random, corpus);
            let from = place(random, other.len());
            input.splice(at.., other[from..].iter().copied());
        }
        3 if !input.is_empty() => {
            input.remove(at);
        }
        4 if !input.is_empty() => input[at] = small(random),
        _ if !input.is_empty() => input[at] ^= 1 << random.below(8),
        _ => {}
    }
}

/// Bytes that begin short values, more often than not.
fn small(random: &mut Random) -> u8 {
    let bound = if random.below(3) == 0 { 256 } else { 32 };
    u8::try_from(random.below(bound)).unwrap()
}

fn place(random: &mut Random, length: usize) -> usize {
    usize::try_from(random.below(length.try_into().unwrap())).unwrap()
}

fn pick<'c>(random: &mut Random, corpus: &'c [Vec<u8>]) -> &'c [u8] {
    &corpus[place(random, corpus.len())]
}
