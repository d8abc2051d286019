use quic_common::Random;

use super::{Encoder, References};
use crate::error::Code;
use crate::field::{Field, Fields};
use crate::limits::{MAX_INSTRUCTIONS, MAX_SECTIONS_UNDER_WAY};
use crate::qpack::{Decoded, Decoder};

const LIMIT: u64 = 1 << 16;

/// The two ends, and what is under way between them.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    stream: u64,
}

impl Pair {
    /// No stream may wait.
    fn new(capacity: u64) -> Self {
        Self::with_blocked(capacity, 0)
    }

    /// So many streams may wait.
    fn with_blocked(capacity: u64, blocked: u64) -> Self {
        Self {
            encoder: Encoder::new(capacity, blocked),
            decoder: Decoder::new(capacity, blocked),
            stream: 0,
        }
    }

    /// Encodes a section and sends it; returns its bytes.
    fn encode(&mut self, lines: &[Field<'_>]) -> Vec<u8> {
        let mut section = Vec::new();
        let encoded = self.encoder.encode(lines.iter().copied(), &mut section);
        let size: u64 = lines.iter().map(Field::size).sum();
        assert_eq!(encoded.size, size);
        self.stream += 4;
        self.encoder.on_sent(self.stream, encoded.references);
        section
    }

    fn decode(&mut self, stream: u64, section: &[u8], lines: &[Field<'_>]) {
        assert!(self.has_decoded(stream, section, lines));
    }

    /// Decodes a section, unless it has to wait.
    fn has_decoded(&mut self, stream: u64, section: &[u8], lines: &[Field<'_>]) -> bool {
        let mut fields = Fields::new();
        let result = self.decoder.decode(stream, section, LIMIT, &mut fields);
        if result == Ok(Decoded::Blocked) {
            return false;
        }
        assert_eq!(result, Ok(Decoded::Whole));
        assert!(fields.iter().eq(lines.iter().copied()));
        true
    }

    fn deliver_instructions(&mut self) -> usize {
        let mut bytes = Vec::new();
        self.encoder.take_instructions(&mut bytes);
        self.decoder.read(&bytes).unwrap();
        bytes.len()
    }

    fn deliver_news(&mut self) {
        let mut bytes = Vec::new();
        self.decoder.take_news(true, &mut bytes).unwrap();
        self.encoder.read(&bytes).unwrap();
    }

    /// A section there, and all that follows from it.
    fn exchange(&mut self, lines: &[Field<'_>]) -> usize {
        let section = self.encode(lines);
        self.decode(self.stream, &section, lines);
        self.deliver_instructions();
        self.deliver_news();
        section.len()
    }
}

fn line(value: &str) -> Field<'_> {
    Field::new("x-name-of-forty-eight-bytes-or-more-which-is-a-lot", value)
}

/// A line that comes for the second time is inserted, and is a byte from then on.
#[test]
fn what_comes_again_becomes_short() {
    let mut pair = Pair::new(4096);
    let lines = [
        Field::new(
            "user-agent",
            "a program/1.0 (a system; with several parts; 47)",
        ),
        Field::new("x-custom", "with a value"),
        Field::new("origin", "https://example.com"),
    ];
    let first = pair.exchange(&lines);
    assert_eq!(pair.encoder.table.inserted(), 0);
    assert_eq!(pair.exchange(&lines), first);
    assert_eq!(pair.encoder.table.inserted(), 1);
    // The first line is a byte now, and pays for the acknowledgment: so the others are worth their place, too.
    assert!(pair.exchange(&lines) < first);
    assert!(pair.exchange(&lines) < first);
    assert_eq!(pair.encoder.table.inserted(), 3);
    assert_eq!(pair.exchange(&lines), 2 + lines.len());
    assert!(pair.encoder.under_way.is_empty());
    // The name of a line helps another: a byte for the name, one and five for the value.
    let other = [lines[0], Field::new("x-custom", "value")];
    assert!(pair.exchange(&other) <= 2 + 1 + 1 + 1 + 5);
}

/// Lines that are short alone wouldn't pay for the acknowledgment of a section that refers to them.
#[test]
fn short_lines_alone_stay_literals() {
    // 47 bytes and 48, of which the name of the static table is one.
    for (length, lines) in [(46, 0), (47, 1)] {
        let value = "v".repeat(length);
        let mut pair = Pair::new(4096);
        for _ in 0..3 {
            pair.exchange(&[Field::new("user-agent", &value)]);
        }
        assert_eq!(pair.encoder.table.inserted(), lines);
    }
}

/// RFC 9204, 2.1.2: lines are referred to once they are known to have arrived, so that no stream waits.
#[test]
fn what_may_not_have_arrived_is_not_referred_to() {
    let mut pair = Pair::new(4096);
    let lines = [line("a value")];
    let first = pair.exchange(&lines);
    for _ in 0..3 {
        let section = pair.encode(&lines);
        assert_eq!(section.len(), first);
        let stream = pair.stream;
        pair.decode(stream, &section, &lines);
    }
    assert!(pair.deliver_instructions() > 0);
    assert_eq!(pair.deliver_instructions(), 0);
    pair.deliver_news();
    assert_eq!(pair.exchange(&lines), 3);
}

/// RFC 9204, 2.1.2: one section at a time refers to lines that may not have arrived, where a stream may wait, and not before
/// the instructions have left.
#[test]
fn one_section_goes_ahead() {
    let mut pair = Pair::with_blocked(4096, 1);
    let lines = [line("a value")];
    let first = pair.exchange(&lines);
    for _ in 0..2 {
        assert_eq!(pair.encode(&lines).len(), first);
    }
    let mut instructions = Vec::new();
    pair.encoder.take_instructions(&mut instructions);
    // Taken, but not gone: 2.1.3.
    pair.encoder.hold_up(true);
    assert_eq!(pair.encode(&lines).len(), first);
    pair.encoder.hold_up(false);
    let ahead = pair.encode(&lines);
    let stream = pair.stream;
    assert_eq!(ahead.len(), 3);
    assert_eq!(pair.encode(&lines).len(), first);
    assert!(!pair.has_decoded(stream, &ahead, &lines));
    pair.decoder.read(&instructions).unwrap();
    assert_eq!(pair.decoder.take_unblocked(), Some(stream));
    pair.decode(stream, &ahead, &lines);
    // The acknowledgment of the section is all that this decoder says.
    let mut news = Vec::new();
    pair.decoder.take_news(true, &mut news).unwrap();
    assert_eq!(news, [0x80 | u8::try_from(stream).unwrap()]);
    pair.encoder.read(&news).unwrap();
    assert_eq!(pair.encode(&lines).len(), 3);
    assert_eq!(pair.encode(&lines).len(), 3);
}

/// RFC 9204, 2.1.1: a line stays while a section that refers to it is under way, and until it is known to have arrived.
#[test]
fn lines_in_use_do_not_leave() {
    let named = |name| {
        [Field::new(
            name,
            "a value of 42 bytes here, as it should be.",
        )]
    };
    let lines = |pair: &Pair| (pair.encoder.table.oldest(), pair.encoder.table.inserted());
    // Room for two lines.
    let mut pair = Pair::new(2 * 80 + 5);
    for name in ["name-1", "name-2"] {
        pair.exchange(&named(name));
        pair.exchange(&named(name));
    }
    assert_eq!(lines(&pair), (0, 2));
    let section = pair.encode(&named("name-1"));
    let stream = pair.stream;
    for _ in 0..3 {
        pair.exchange(&named("name-3"));
    }
    assert_eq!(lines(&pair), (0, 2));
    pair.decode(stream, &section, &named("name-1"));
    pair.deliver_news();
    pair.encode(&named("name-3"));
    assert_eq!(lines(&pair), (1, 3));
    // The second line is free, the third may not have arrived.
    for name in ["name-4", "name-5"] {
        for _ in 0..3 {
            pair.encode(&named(name));
        }
        assert_eq!(lines(&pair), (2, 4));
    }
    pair.deliver_instructions();
    pair.deliver_news();
    pair.encode(&named("name-5"));
    assert_eq!(lines(&pair), (3, 5));
}

/// RFC 9204, 4.5.4 and 7.1.3: what is sensitive, or could be guessed, never stands in the table.
#[test]
fn secrets_stay_out_of_the_table() {
    let mut pair = Pair::new(4096);
    let lines = [
        line("a secret").sensitive(),
        Field::new("authorization", "Basic abcdefghijklmnopqrstuvwxyz"),
        Field::new("cookie", "nineteen bytes long"),
    ];
    for _ in 0..4 {
        pair.exchange(&lines);
    }
    assert_eq!(pair.encoder.table.inserted(), 0);
    let long = [Field::new(
        "cookie",
        "a cookie of more than 20 bytes, and of 48 in all",
    )];
    for _ in 0..2 {
        pair.exchange(&long);
    }
    assert_eq!(pair.encoder.table.inserted(), 1);
    // One that is in the table, and is called sensitive later.
    let sensitive = long.map(Field::sensitive);
    assert!(pair.exchange(&sensitive) > 10);
}

/// RFC 9204, 3.2.3: no table where the peer allows none, or where it is too small for anything.
#[test]
fn the_peers_settings_are_kept() {
    for capacity in [0, 31, 50] {
        let mut pair = Pair::new(capacity);
        for _ in 0..4 {
            pair.exchange(&[line("a value")]);
        }
        assert_eq!(pair.encoder.table.inserted(), 0);
        assert!(pair.encoder.under_way.is_empty());
    }
    // The decoder would say so if we took more than it allows.
    let mut pair = Pair::new(1 << 40);
    for _ in 0..4 {
        pair.exchange(&[line("a value")]);
    }
    assert_eq!(pair.encoder.table.capacity(), super::MAX_ENCODER_CAPACITY);
}

/// RFC 9204, 4.4: news of what was never sent.
#[test]
fn news_of_nothing_are_errors_of_the_decoder_stream() {
    let mut pair = Pair::new(4096);
    for _ in 0..2 {
        pair.exchange(&[line("a value")]);
    }
    let refused = |encoder: &mut Encoder, bytes: &[u8]| {
        let code = encoder.read(bytes).unwrap_err().code;
        assert_eq!(code, Code::QPACK_DECODER_STREAM_ERROR);
    };
    refused(&mut pair.encoder, &[0x00]);
    refused(&mut pair.encoder, &[0x01]);
    refused(&mut pair.encoder, &[0x84]);
    pair.encode(&[line("a value")]);
    // A stream has an acknowledgment for each section.
    let stream = u8::try_from(pair.stream).unwrap();
    assert_eq!(pair.encoder.read(&[0x80 | stream]), Ok(()));
    refused(&mut pair.encoder, &[0x80 | stream]);
    // None for a section without references, and any number of cancellations.
    pair.encode(&[Field::new("x-other", "another value")]);
    refused(&mut pair.encoder, &[0x80 | (stream + 4)]);
    assert_eq!(pair.encoder.read(&[0x44, 0x7f, 0x80, 0x01]), Ok(()));
}

/// RFC 9204, 4.4.2: a cancelled stream needs its lines no longer.
#[test]
fn a_cancellation_releases_lines() {
    let mut pair = Pair::new(4096);
    for _ in 0..2 {
        pair.exchange(&[line("a value")]);
    }
    pair.encode(&[line("a value")]);
    pair.encoder
        .on_sent(pair.stream, References { first: 0, end: 1 });
    assert_eq!(pair.encoder.under_way.len(), 2);
    let stream = u8::try_from(pair.stream).unwrap();
    assert_eq!(pair.encoder.read(&[0x40 | stream]), Ok(()));
    assert!(pair.encoder.under_way.is_empty());
}

/// What a peer that never acknowledges makes us keep.
#[test]
fn what_is_not_acknowledged_is_bounded() {
    let mut pair = Pair::new(4096);
    for _ in 0..2 {
        pair.exchange(&[line("a value")]);
    }
    for _ in 0..MAX_SECTIONS_UNDER_WAY {
        assert_eq!(pair.encode(&[line("a value")]).len(), 3);
    }
    assert!(pair.encode(&[line("a value")]).len() > 3);
    assert_eq!(pair.encoder.under_way.len(), MAX_SECTIONS_UNDER_WAY);
}

/// What a peer that gives the encoder stream no room makes us keep.
#[test]
fn instructions_that_cannot_leave_are_bounded() {
    let mut encoder = Encoder::new(1 << 20, 0);
    for round in 0..1000 {
        let value = format!("{round:0>1000}");
        for _ in 0..2 {
            encoder.encode([line(&value)], &mut Vec::new());
        }
        encoder.read(&[1]).unwrap_or_default();
        assert!(encoder.instructions.len() <= MAX_INSTRUCTIONS + 16);
    }
    assert!(encoder.table.inserted() > 3);
}

type Lines = Vec<(String, String)>;

/// Sections, instructions and news that come early and late, in any mixture, cancelled streams and small tables: what is decoded
/// is what was encoded, and no section waits where none may, nor two where one may.
#[test]
fn whatever_comes_when_the_lines_are_the_same() {
    for seed in 0_u8..40 {
        let mut random = Random::from_seed([seed; 32]);
        let mut below = |count: u64| random.below(count);
        let capacity = [180, 300, 600, 4096][usize::from(seed % 4)];
        let mut pair = Pair::with_blocked(capacity, u64::from(seed / 4 % 2));
        let mut under_way: Vec<(u64, Vec<u8>, Lines)> = Vec::new();
        for _ in 0..2000 {
            match below(8) {
                0..3 => {
                    let lines: Lines = (0..below(5))
                        .map(|_| {
                            (
                                format!("name-{}", below(4)),
                                format!(
                                    "a value of more than 48 bytes with a number: {}",
                                    below(9)
                                ),
                            )
                        })
                        .collect();
                    let fields: Vec<_> = lines.iter().map(|(n, v)| Field::new(n, v)).collect();
                    let section = pair.encode(&fields);
                    under_way.push((pair.stream, section, lines));
                }
                3..6 if !under_way.is_empty() => {
                    let place = below(u64::try_from(under_way.len()).unwrap());
                    let (stream, section, lines) =
                        under_way.swap_remove(usize::try_from(place).unwrap());
                    if below(10) == 0 {
                        pair.decoder.cancel(stream);
                        continue;
                    }
                    let fields: Vec<_> = lines.iter().map(|(n, v)| Field::new(n, v)).collect();
                    if !pair.has_decoded(stream, &section, &fields) {
                        under_way.push((stream, section, lines));
                    }
                }
                6 => {
                    pair.deliver_instructions();
                    while pair.decoder.take_unblocked().is_some() {}
                }
                _ => pair.deliver_news(),
            }
        }
        assert!(pair.encoder.table.inserted() > 3, "seed {seed}");
    }
}
