//! Entry points for fuzzing: each takes any bytes, does what they say, and asserts what must hold whatever they are.
//!
//! The tests below run each over its corpus in `fuzz/corpus` and over seeded inputs; the targets in `fuzz/` call the same
//! functions. There is no such module without the feature `fuzzing`.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "what panics here is what a fuzzer looks for"
)]

mod memory;
mod sessions;

pub use crate::qpack::fuzzing::{dynamic_table, huffman, instructions, qpack};
pub use sessions::{client_session, server_session};

use crate::frame::{FrameHeader, HeaderReader, MAX_HEADER};
use crate::settings::Settings;

/// Reads frame headers from the bytes, cut in pieces as the first byte says, and compares with the uncut ones.
pub fn http3_frames(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else {
        return;
    };
    let whole = frame_headers(stream, usize::MAX);
    assert_eq!(whole, frame_headers(stream, 1 + usize::from(first % 16)));
    for header in whole {
        let mut space = [0; MAX_HEADER];
        let start = header.write_before(&mut space);
        let again = HeaderReader::default().read(&space[start..]);
        assert_eq!(again, (MAX_HEADER - start, Some(header)));
    }
}

/// The headers of frames whose payload is at most 7 bytes long here, whatever they say.
fn frame_headers(mut stream: &[u8], most: usize) -> Vec<FrameHeader> {
    let mut reader = HeaderReader::default();
    let mut headers = Vec::new();
    while !stream.is_empty() {
        let piece = &stream[..stream.len().min(most)];
        let (used, header) = reader.read(piece);
        assert!(used > 0 && used <= piece.len());
        assert!(header.is_some() || (used == piece.len() && reader.is_partial()));
        stream = &stream[used..];
        if let Some(header) = header {
            assert!(!reader.is_partial());
            let skipped = usize::try_from(header.length % 8).unwrap();
            stream = &stream[skipped.min(stream.len())..];
            headers.push(header);
        }
    }
    headers
}

/// Reads the bytes as SETTINGS, writes them again, and compares.
pub fn settings(payload: &[u8]) {
    let Ok(settings) = Settings::parse(payload) else {
        return;
    };
    let mut encoded = Vec::new();
    settings.encode(&mut encoded);
    assert_eq!(Settings::parse(&encoded), Ok(settings));
}

#[cfg(test)]
mod tests {
    use test_fixture::inputs;

    #[test]
    fn qpack() {
        inputs::run("qpack", 20_000, super::qpack);
    }

    #[test]
    fn huffman() {
        inputs::run("huffman", 20_000, super::huffman);
    }

    #[test]
    fn instructions() {
        inputs::run("instructions", 30_000, super::instructions);
    }

    #[test]
    fn dynamic_table() {
        inputs::run("dynamic_table", 30_000, super::dynamic_table);
    }

    #[test]
    fn http3_frames() {
        inputs::run("http3_frames", 30_000, super::http3_frames);
    }

    #[test]
    fn settings() {
        inputs::run("settings", 30_000, super::settings);
    }

    #[test]
    fn client_session() {
        inputs::run("client_session", 15_000, super::client_session);
    }

    #[test]
    fn server_session() {
        inputs::run("server_session", 15_000, super::server_session);
    }
}
