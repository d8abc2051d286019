use super::{Decoded, Decoder};
use crate::error::Code;
use crate::field::{Field, Fields};
use crate::limits::MAX_DECODER_NEWS;
use crate::qpack::DecodeError;

const LIMIT: u64 = 1 << 16;

/// Says what has come: an example of the RFC's appendix B up to its part 5.
const B2: &[u8] = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";
const B3: &[u8] = b"\x4acustom-key\x0ccustom-value";
const B4: &[u8] = b"\x02";
const B5: &[u8] = b"\x81\x0dcustom-value2";
const SECTION_B2: &[u8] = &[0x03, 0x81, 0x10, 0x11];
const SECTION_B4: &[u8] = &[0x05, 0x00, 0x80, 0xc1, 0x81];

fn decoded(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Fields, DecodeError> {
    let mut fields = Fields::new();
    let result = decoder.decode(stream, section, LIMIT, &mut fields)?;
    assert_eq!(result, Decoded::Whole);
    Ok(fields)
}

fn news(decoder: &mut Decoder) -> Vec<u8> {
    let mut news = Vec::new();
    decoder.take_news(true, &mut news).unwrap();
    news
}

fn code(decoder: &mut Decoder, instructions: &[u8]) -> Code {
    decoder.read(instructions).unwrap_err().code
}

/// RFC 9204, B.2 to B.5, with the instructions whole and byte by byte.
#[test]
fn the_example_of_the_rfc() {
    for step in [1, 7, 100] {
        let mut decoder = Decoder::new(220, 0);
        let read = |decoder: &mut Decoder, bytes: &[u8]| {
            bytes
                .chunks(step)
                .for_each(|part| decoder.read(part).unwrap());
        };
        read(&mut decoder, B2);
        let fields = decoded(&mut decoder, 4, SECTION_B2).unwrap();
        assert!(fields.iter().eq([
            Field::new(":authority", "www.example.com"),
            Field::new(":path", "/sample/path"),
        ]));
        assert_eq!(news(&mut decoder), [0x84]);
        read(&mut decoder, B3);
        assert_eq!(news(&mut decoder), [0x01]);
        read(&mut decoder, B4);
        let fields = decoded(&mut decoder, 8, SECTION_B4).unwrap();
        assert!(fields.iter().eq([
            Field::new(":authority", "www.example.com"),
            Field::new(":path", "/"),
            Field::new("custom-key", "custom-value"),
        ]));
        assert_eq!(news(&mut decoder), [0x88]);
        decoder.cancel(8);
        assert_eq!(news(&mut decoder), [0x48]);
        read(&mut decoder, B5);
        // The first line has left: 217 bytes with it, and 215 after.
        assert_eq!((decoder.table.oldest(), decoder.table.inserted()), (1, 5));
        assert_eq!(news(&mut decoder), [0x01]);
        assert!(news(&mut decoder).is_empty());
    }
}

/// RFC 9204, 2.2.1: a section that comes before its lines waits for them.
#[test]
fn a_section_waits_for_its_lines() {
    let mut decoder = Decoder::new(220, 1);
    let mut fields = Fields::new();
    for _ in 0..3 {
        let result = decoder.decode(4, SECTION_B2, LIMIT, &mut fields);
        assert_eq!(result, Ok(Decoded::Blocked));
    }
    assert!(fields.is_empty());
    // 2.2.1: one stream more than the settings say.
    let beyond = decoder.decode(8, SECTION_B2, LIMIT, &mut fields);
    assert!(matches!(beyond, Err(DecodeError::Failed(_))));
    let (first, second) = B2.split_at(25);
    decoder.read(first).unwrap();
    assert_eq!(decoder.take_unblocked(), None);
    decoder.read(second).unwrap();
    assert_eq!(decoder.take_unblocked(), Some(4));
    assert_eq!(decoder.take_unblocked(), None);
    assert_eq!(decoded(&mut decoder, 4, SECTION_B2).unwrap().len(), 2);
}

/// RFC 9204, 2.2.2.2: a stream that nobody reads any more waits no longer, and the encoder is told.
#[test]
fn a_cancelled_stream_makes_room_for_another() {
    let mut decoder = Decoder::new(220, 1);
    let mut fields = Fields::new();
    let blocked = |decoder: &mut Decoder, stream, fields: &mut Fields| {
        decoder.decode(stream, SECTION_B2, LIMIT, fields)
    };
    assert_eq!(blocked(&mut decoder, 4, &mut fields), Ok(Decoded::Blocked));
    decoder.cancel(4);
    assert_eq!(blocked(&mut decoder, 8, &mut fields), Ok(Decoded::Blocked));
    assert_eq!(news(&mut decoder), [0x44]);
    decoder.read(B2).unwrap();
    assert_eq!(decoder.take_unblocked(), Some(8));
    // Without a table there is nothing that an encoder would wait for.
    let mut decoder = Decoder::new(0, 0);
    decoder.cancel(4);
    assert!(news(&mut decoder).is_empty());
}

/// RFC 9204, 2.2.3 and 4.5.1: lines that have left, that are not required, or that never were.
#[test]
fn references_to_other_lines_are_refused() {
    let with_lines = || {
        let mut decoder = Decoder::new(220, 0);
        decoder.read(&[B2, B3, B4, B5].concat()).unwrap();
        decoder
    };
    let refused = |section: &[u8]| {
        let result = decoded(&mut with_lines(), 4, section);
        assert!(matches!(result, Err(DecodeError::Failed(_))), "{section:?}");
    };
    // Required 5, base 5: the newest line, the oldest, and the one that has left.
    for (index, is_there) in [(0x80, true), (0x83, true), (0x84, false), (0x85, false)] {
        let result = decoded(&mut with_lines(), 4, &[6, 0, index]);
        assert_eq!(result.is_ok(), is_there, "{index:#x}");
    }
    // Required 4, base 5: the fifth line isn't required, whatever it is called by.
    refused(&[5, 1, 0x80]);
    refused(&[5, 0, 0x10]);
    refused(&[5, 1, 0x40, 0]);
    refused(&[5, 0, 0x00, 0]);
    // Nothing is required.
    refused(&[0, 9, 0x80]);
    refused(&[0, 0, 0x10]);
}

/// RFC 9204, 4.5.2 to 4.5.5: every way to name a line, before the base and after it, and never to be indexed.
#[test]
fn every_representation_is_understood() {
    let mut decoder = Decoder::new(220, 0);
    decoder.read(&[B2, B3].concat()).unwrap();
    // Required 3, base 1.
    let section = [
        &[4, 0x81][..],
        &[0x80, 0x11],
        b"\x40\x01a",
        b"\x60\x01b",
        b"\x01\x01c",
        b"\x09\x01d",
    ]
    .concat();
    let fields = decoded(&mut decoder, 0, &section).unwrap();
    assert!(fields.iter().eq([
        Field::new(":authority", "www.example.com"),
        Field::new("custom-key", "custom-value"),
        Field::new(":authority", "a"),
        Field::new(":authority", "b").sensitive(),
        Field::new("custom-key", "c"),
        Field::new("custom-key", "d").sensitive(),
    ]));
}

/// RFC 9204, 3.2.2, 3.2.3 and 4.3: what an encoder must not say.
#[test]
fn broken_instructions_are_errors_of_the_encoder_stream() {
    let refused = |bytes: &[u8]| {
        let mut decoder = Decoder::new(220, 0);
        let code = code(&mut decoder, bytes);
        assert_eq!(code, Code::QPACK_ENCODER_STREAM_ERROR, "{bytes:?}");
    };
    // A capacity of 221; a line before there is a capacity.
    refused(&[0x3f, 0xbe, 0x01]);
    refused(&[0xc0, 0x01, b'a']);
    // No such entry in the static table, nor in the dynamic one.
    refused(&[&B2[..3], &[0xff, 0x24, 0x00]].concat());
    refused(&[&B2[..3], &[0x80, 0x00]].concat());
    refused(&[&B2[..3], &[0x00]].concat());
    refused(&[B2, &[0x82, 0x00]].concat());
    refused(&[B2, &[0x02]].concat());
    // A line of 221 bytes, of which the last could have been the first of a Huffman code.
    let line = |length: u8| {
        [
            &B2[..3],
            &[0x41, b'a', 0x7f, length - 127],
            &vec![b'a'; length.into()],
        ]
        .concat()
    };
    let mut decoder = Decoder::new(220, 0);
    assert_eq!(decoder.read(&line(187)), Ok(()));
    refused(&line(188));
    // Not a Huffman code.
    refused(&[&B2[..3], &[0xc0, 0x81, 0x00]].concat());
}

/// What waits for a peer that doesn't read is bounded.
#[test]
fn acknowledgments_that_cannot_leave_are_bounded() {
    let mut decoder = Decoder::new(220, 0);
    decoder.read(B2).unwrap();
    let mut out = Vec::new();
    for stream in 0.. {
        decoded(&mut decoder, stream, SECTION_B2).unwrap();
        let taken = decoder.take_news(false, &mut out);
        if decoder.news.len() > MAX_DECODER_NEWS {
            assert_eq!(taken.unwrap_err().code, Code::EXCESSIVE_LOAD);
            break;
        }
        assert_eq!(taken, Ok(()));
    }
    assert!(out.is_empty());
}

/// A short section that refers to a long line again and again stops at the limit.
#[test]
fn a_bomb_of_dynamic_references_stops_at_the_limit() {
    let mut decoder = Decoder::new(4096, 0);
    let line = [
        &[0x3f, 0xe1, 0x1f, 0x41, b'a', 0x7f, 0xa1, 0x1e][..],
        &[b'b'; 4000],
    ]
    .concat();
    decoder.read(&line).unwrap();
    let mut section = vec![0x80; 1000];
    section[..2].copy_from_slice(&[2, 0]);
    let mut fields = Fields::new();
    let result = decoder.decode(0, &section, LIMIT, &mut fields);
    assert_eq!(result, Err(DecodeError::TooLarge));
    assert!(fields.len() <= 17);
}
