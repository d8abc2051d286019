//! Field sections that other implementations encoded, from the public `qpackers/qifs` data, and the same lists through
//! our own encoder. The data stands outside the repository; without it the tests say so.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use quic_common::Reader;
use quic_http3::qpack::{Decoded, Decoder, Encoder};
use quic_http3::{Field, Fields};

/// Unpacks an archive; `None` when there is none, or nothing to unpack it with.
fn unpack(name: &str, test: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("QUIC_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let archive = shared.join("qifs").join(name);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{}-{test}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let unpacked = archive.exists()
        && Command::new("tar")
            .arg("-xJf")
            .arg(&archive)
            .arg("-C")
            .arg(&directory)
            .status()
            .is_ok_and(|status| status.success());
    if !unpacked {
        println!("skipped: no {}", archive.display());
        std::fs::remove_dir_all(&directory).unwrap();
        return None;
    }
    Some(directory)
}

/// The field lists of a .qif file.
fn lists(text: &[u8]) -> Vec<Fields> {
    let mut lists = vec![Fields::new()];
    for line in text.split(|byte| *byte == b'\n') {
        if line.starts_with(b"#") {
            continue;
        }
        if line.is_empty() {
            lists.push(Fields::new());
            continue;
        }
        let tab = line.iter().position(|byte| *byte == b'\t').unwrap();
        let (name, value) = line.split_at(tab);
        lists
            .last_mut()
            .unwrap()
            .push(Field::new(name, value.strip_prefix(b"\t").unwrap()));
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// The blocks of an encoded file: stream IDs and bytes.
fn blocks(bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut reader = Reader::new(bytes);
    let mut blocks = Vec::new();
    while !reader.is_empty() {
        let id = u64::from_be_bytes(reader.array().unwrap());
        let length = usize::try_from(reader.u32().unwrap()).unwrap();
        blocks.push((id, reader.bytes(length).unwrap()));
    }
    blocks
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A decoder whose table has its full capacity from the start, which the files suppose.
fn decoder_of(capacity: u64, blocked: u64) -> Decoder {
    let mut decoder = Decoder::new(capacity, blocked);
    let mut instruction = Vec::new();
    match capacity.checked_sub(31) {
        None => instruction.push(0x20 | u8::try_from(capacity).unwrap()),
        Some(mut rest) => {
            instruction.push(0x3f);
            while rest >= 0x80 {
                instruction.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
                rest >>= 7;
            }
            instruction.push(u8::try_from(rest).unwrap());
        }
    }
    decoder.read(&instruction).unwrap();
    decoder
}

/// Decodes a file's blocks as they come; sections by stream ID.
fn decode_all(encoded: &[u8], decoder: &mut Decoder) -> BTreeMap<u64, Fields> {
    let mut sections = BTreeMap::new();
    let mut waiting = BTreeMap::new();
    for (id, block) in blocks(encoded) {
        if id == 0 {
            decoder.read(block).unwrap();
        } else {
            waiting.insert(id, block);
        }
        waiting.retain(|id, section| {
            let mut fields = Fields::new();
            let result = decoder.decode(*id, section, 1 << 20, &mut fields);
            let is_blocked = result.unwrap() == Decoded::Blocked;
            if !is_blocked {
                sections.insert(*id, fields);
            }
            is_blocked
        });
        while decoder.take_unblocked().is_some() {}
    }
    assert!(waiting.is_empty());
    sections
}

#[test]
fn sections_of_other_encoders_are_decoded() {
    let Some(qifs) = unpack("qifs.tar.xz", "others") else {
        return;
    };
    let (mut checked, mut dynamic) = (0, 0);
    for archive in ["encoded-netbsd.tar.xz", "encoded-fb-req-hq.tar.xz"] {
        let directory = unpack(archive, "others").unwrap();
        for file in files(&directory) {
            let name = file.file_name().unwrap().to_str().unwrap();
            let Some((set, limits)) = name.split_once(".out.") else {
                continue;
            };
            let limits: Vec<u64> = limits
                .split('.')
                .map(|part| part.parse().unwrap())
                .collect();
            let [capacity, blocked, ..] = limits[..] else {
                panic!("{name}");
            };
            let qif = std::fs::read(qifs.join("qifs").join(format!("{set}.qif"))).unwrap();
            let encoded = std::fs::read(&file).unwrap();
            let mut decoder = decoder_of(capacity, blocked);
            let sections = decode_all(&encoded, &mut decoder);
            let expected = lists(&qif);
            assert_eq!(sections.len(), expected.len(), "{}", file.display());
            for (fields, expected) in sections.values().zip(&expected) {
                assert!(
                    fields.iter().map(plain).eq(expected.iter()),
                    "{}",
                    file.display()
                );
            }
            checked += 1;
            dynamic += u32::from(capacity > 0);
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
    std::fs::remove_dir_all(qifs).unwrap();
    println!("{checked} files, {dynamic} with a dynamic table");
    assert!(checked - dynamic >= 12 && dynamic >= 12);
}

/// The files don't say what is sensitive.
const fn plain(field: Field<'_>) -> Field<'_> {
    Field {
        sensitive: false,
        ..field
    }
}

/// Our encoder and decoder, with tables of several sizes, and a decoder whose news arrive after each section or after
/// each tenth.
#[test]
fn our_own_sections_are_decoded() {
    let Some(qifs) = unpack("qifs.tar.xz", "own") else {
        return;
    };
    for file in files(&qifs) {
        let text = std::fs::read(&file).unwrap();
        let lists = lists(&text);
        let all = lists.iter().flat_map(Fields::iter);
        let before: usize = all.map(|field| field.name.len() + field.value.len()).sum();
        for (capacity, blocked, every) in [(0, 0, 1), (256, 0, 1), (4096, 0, 1), (4096, 1, 10)] {
            let mut encoder = Encoder::new(capacity, blocked);
            let mut decoder = Decoder::new(capacity, 0);
            let mut after = 0;
            for (list, stream) in lists.iter().zip(1..) {
                let (mut section, mut instructions, mut news) =
                    (Vec::new(), Vec::new(), Vec::new());
                let references = encoder.encode(list, &mut section).references;
                encoder.on_sent(stream, references);
                let mut fields = Fields::new();
                let result = decoder.decode(stream, &section, 1 << 20, &mut fields);
                assert_eq!(result, Ok(Decoded::Whole));
                assert_eq!(&fields, list);
                encoder.take_instructions(&mut instructions);
                decoder.read(&instructions).unwrap();
                if stream % every == 0 {
                    decoder.take_news(true, &mut news).unwrap();
                    encoder.read(&news).unwrap();
                }
                after += section.len() + instructions.len();
            }
            println!("{}, {capacity} bytes: {before} -> {after}", file.display());
        }
    }
    std::fs::remove_dir_all(qifs).unwrap();
}

#[test]
fn broken_sections_are_refused() {
    let Some(errors) = unpack("errors.tar.xz", "broken") else {
        return;
    };
    for file in files(&errors) {
        let encoded = std::fs::read(&file).unwrap();
        // Two refer to entries 0 and 62 of the static table, which the RFC has and its drafts had not.
        if file.ends_with("err9") || file.ends_with("err10") {
            continue;
        }
        let mut decoder = decoder_of(4096, 100);
        let refused = blocks(&encoded).iter().any(|(id, block)| {
            let mut fields = Fields::new();
            if *id == 0 {
                return decoder.read(block).is_err();
            }
            decoder.decode(*id, block, 1 << 20, &mut fields).is_err()
        });
        assert!(refused, "{}", file.display());
    }
    std::fs::remove_dir_all(errors).unwrap();
}
