//! Field sections that other implementations encoded, from the public `qpackers/qifs` data, and the same lists through
//! our own encoder. The data stands outside the repository; without it the tests say so.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::Command;

use quic_common::Reader;
use quic_http3::{Field, Fields, qpack};

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

#[test]
fn sections_of_other_encoders_are_decoded() {
    let Some(qifs) = unpack("qifs.tar.xz", "others") else {
        return;
    };
    let mut checked = 0;
    for archive in ["encoded-netbsd.tar.xz", "encoded-fb-req-hq.tar.xz"] {
        let directory = unpack(archive, "others").unwrap();
        for file in files(&directory) {
            let name = file.file_name().unwrap().to_str().unwrap();
            // Without a dynamic table.
            let Some((set, _)) = name.split_once(".out.0.") else {
                continue;
            };
            let qif = std::fs::read(qifs.join("qifs").join(format!("{set}.qif"))).unwrap();
            let encoded = std::fs::read(&file).unwrap();
            let mut blocks: Vec<_> = blocks(&encoded)
                .into_iter()
                .filter(|(id, _)| *id != 0)
                .collect();
            blocks.sort_by_key(|(id, _)| *id);
            let expected = lists(&qif);
            assert_eq!(blocks.len(), expected.len(), "{}", file.display());
            for ((_, section), expected) in blocks.iter().zip(&expected) {
                let mut fields = Fields::new();
                qpack::decode(section, 1 << 20, &mut fields).unwrap();
                assert!(
                    fields.iter().map(plain).eq(expected.iter()),
                    "{}",
                    file.display()
                );
            }
            checked += 1;
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
    std::fs::remove_dir_all(qifs).unwrap();
    println!("{checked} files");
    assert!(checked >= 12);
}

/// The files don't say what is sensitive.
const fn plain(field: Field<'_>) -> Field<'_> {
    Field {
        sensitive: false,
        ..field
    }
}

#[test]
fn our_own_sections_are_decoded() {
    let Some(qifs) = unpack("qifs.tar.xz", "own") else {
        return;
    };
    for file in files(&qifs) {
        let text = std::fs::read(&file).unwrap();
        let lists = lists(&text);
        let (mut before, mut after) = (0, 0);
        for list in &lists {
            let mut section = Vec::new();
            qpack::encode(list, &mut section);
            let mut fields = Fields::new();
            qpack::decode(&section, 1 << 20, &mut fields).unwrap();
            assert_eq!(&fields, list);
            before += list
                .iter()
                .map(|f| f.name.len() + f.value.len())
                .sum::<usize>();
            after += section.len();
        }
        println!("{}: {before} -> {after} bytes", file.display());
    }
    std::fs::remove_dir_all(qifs).unwrap();
}

#[test]
fn broken_sections_are_refused() {
    let Some(errors) = unpack("errors.tar.xz", "broken") else {
        return;
    };
    for file in files(&errors) {
        // Two refer to entries 0 and 62 of the static table, which the RFC has and its drafts had not.
        if file.ends_with("err9") || file.ends_with("err10") {
            continue;
        }
        let encoded = std::fs::read(&file).unwrap();
        let refused = blocks(&encoded).iter().any(|(id, block)| {
            let mut fields = Fields::new();
            // Instructions need a dynamic table, of which there is none.
            *id == 0 && !block.is_empty() || qpack::decode(block, 1 << 20, &mut fields).is_err()
        });
        assert!(refused, "{}", file.display());
    }
    std::fs::remove_dir_all(errors).unwrap();
}
