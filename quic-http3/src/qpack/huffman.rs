//! The Huffman code of [RFC 7541, appendix B](https://www.rfc-editor.org/rfc/rfc7541#appendix-B).
//!
//! The code is canonical: codes of one length are consecutive and in the order of their symbols, and a longer code
//! goes on where the shorter ones ended. The lengths say everything; all tables are computed from them at compile time.

/// The string is not a Huffman code: EOS in it, or padding that is too long or not all ones (RFC 7541, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// For each length in bits, the symbols whose code has it. EOS is the last code of 30 bits.
const SYMBOLS: [(u8, &[u8]); 20] = [
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b"!\"()?"),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\0$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, &[92, 195, 208]),
    (20, &[128, 130, 131, 162, 184, 194, 224, 226]),
    (
        21,
        &[
            153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230,
        ],
    ),
    (
        22,
        &[
            129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185,
            186, 187, 189, 190, 196, 198, 228, 232, 233,
        ],
    ),
    (
        23,
        &[
            1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166,
            168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239,
        ],
    ),
    (
        24,
        &[9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237],
    ),
    (25, &[199, 207, 234, 235]),
    (
        26,
        &[
            192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255,
        ],
    ),
    (
        27,
        &[
            203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252,
            253, 254,
        ],
    ),
    (
        28,
        &[
            2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28,
            29, 30, 31, 127, 220, 249,
        ],
    ),
];

/// The symbols of the longest codes, of 30 bits, EOS excepted.
const LONGEST: &[u8] = &[10, 13, 22];

/// Codes of up to this many bits are found with one look-up.
const SHORT_BITS: u32 = 8;

struct Tables {
    /// The code of each symbol, aligned to the right.
    codes: [u32; 256],
    /// The length of each symbol's code in bits.
    lengths: [u8; 256],
    /// By the next 8 bits: the symbol and the length of its code; length 0 when the code is longer.
    short: [(u8, u8); 256],
    /// By group of `SYMBOLS` and `LONGEST`: where its codes end, aligned to the left of 32 bits.
    ends: [u64; 21],
}

static TABLES: Tables = tables();

#[expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "runs at compile time, where an overrun is a compile error and `From` is not available"
)]
const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; 256],
        lengths: [0; 256],
        short: [(0, 0); 256],
        ends: [0; 21],
    };
    let (mut code, mut previous, mut group) = (0_u32, 0_u8, 0);
    while group <= SYMBOLS.len() {
        let (length, symbols) = group_of(group);
        code <<= length - previous;
        previous = length;
        let mut i = 0;
        while i < symbols.len() {
            let symbol = symbols[i];
            tables.codes[symbol as usize] = code;
            tables.lengths[symbol as usize] = length;
            if length as u32 <= SHORT_BITS {
                let spare = SHORT_BITS - length as u32;
                let mut entry = (code << spare) as usize;
                while entry < ((code + 1) << spare) as usize {
                    tables.short[entry] = (symbol, length);
                    entry += 1;
                }
            }
            code += 1;
            i += 1;
        }
        tables.ends[group] = (code as u64) << (32 - length as u32);
        group += 1;
    }
    // One code is left, thirty ones: EOS. A list with a wrong length would not come out so.
    assert!(code == 0x3fff_ffff && previous == 30, "not the whole code");
    tables
}

/// A group of equally long codes; the one after the last of `SYMBOLS` is `LONGEST`.
#[expect(clippy::indexing_slicing, reason = "the index is checked")]
const fn group_of(group: usize) -> (u8, &'static [u8]) {
    if group < SYMBOLS.len() {
        SYMBOLS[group]
    } else {
        (30, LONGEST)
    }
}

/// Bytes that `bytes` take as a Huffman code, the padding included.
#[inline]
pub(super) fn encoded_length(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|byte| usize::from(length_of(*byte))).sum();
    bits.div_ceil(8)
}

fn length_of(byte: u8) -> u8 {
    TABLES
        .lengths
        .get(usize::from(byte))
        .copied()
        .unwrap_or_default()
}

/// Appends the code of `bytes` to `out`, padded with ones.
#[inline]
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    // The lowest `count` bits of `pending` are not written yet; fewer than 32 remain after each symbol.
    let (mut pending, mut count) = (0_u64, 0_u32);
    for byte in bytes {
        let length = u32::from(length_of(*byte));
        let code = TABLES
            .codes
            .get(usize::from(*byte))
            .copied()
            .unwrap_or_default();
        pending = pending << length | u64::from(code);
        count += length;
        if count >= 32 {
            count -= 32;
            let [.., a, b, c, d] = (pending >> count).to_be_bytes();
            out.extend_from_slice(&[a, b, c, d]);
        }
    }
    let padding = count.wrapping_neg() % 8;
    pending = pending << padding | ((1 << padding) - 1);
    count += padding;
    while count >= 8 {
        count -= 8;
        let [.., byte] = (pending >> count).to_be_bytes();
        out.push(byte);
    }
}

/// Appends what `input` decodes to.
#[inline]
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    // The shortest code has 5 bits.
    out.reserve(input.len().saturating_mul(8) / 5);
    let mut rest = input;
    // The next bits of the input stand at the top of `bits`; `count` of them are valid.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        if let Some(word) = rest.first_chunk::<8>() {
            // The byte that fits only in part is read again by the next refill, with the same bits.
            bits |= u64::from_be_bytes(*word).unbounded_shr(count);
            let whole = (63 - count) / 8;
            rest = rest
                .get(usize::try_from(whole).unwrap_or_default()..)
                .unwrap_or_default();
            count += whole * 8;
        } else {
            while count <= 56
                && let Some((byte, after)) = rest.split_first()
            {
                bits |= u64::from(*byte) << (56 - count);
                count += 8;
                rest = after;
            }
        }
        // Enough bits for any code, unless this is the end.
        loop {
            let (symbol, length) = symbol_at(bits)?;
            let length = u32::from(length);
            if length > count {
                return padding(bits, count);
            }
            out.push(symbol);
            bits <<= length;
            count -= length;
            if count < 30 {
                break;
            }
        }
    }
}

/// The symbol whose code the top of `bits` begins with; EOS is an error.
#[inline]
fn symbol_at(bits: u64) -> Result<(u8, u8), Malformed> {
    let [top, ..] = bits.to_be_bytes();
    match TABLES.short.get(usize::from(top)) {
        Some((symbol, length)) if *length != 0 => Ok((*symbol, *length)),
        _ => long_symbol_at(bits >> 32),
    }
}

/// The same for a code of more than 8 bits, from the next 32 bits.
fn long_symbol_at(bits: u64) -> Result<(u8, u8), Malformed> {
    let group = TABLES
        .ends
        .iter()
        .position(|end| bits < *end)
        .ok_or(Malformed)?;
    let (length, symbols) = group_of(group);
    let end = TABLES.ends.get(group).copied().ok_or(Malformed)?;
    let from_end = (end - 1 - bits) >> (32 - u32::from(length));
    usize::try_from(from_end)
        .ok()
        .and_then(|from_end| symbols.len().checked_sub(1 + from_end))
        .and_then(|index| symbols.get(index))
        .map(|symbol| (*symbol, length))
        .ok_or(Malformed)
}

/// The last `count` bits of `bits` are no whole code: they must be fewer than 8 ones.
const fn padding(bits: u64, count: u32) -> Result<(), Malformed> {
    if count < 8 && bits.leading_ones() >= count {
        Ok(())
    } else {
        Err(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{Malformed, TABLES, decode, encode, encoded_length};

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_length(text));
        out
    }

    fn decoded(code: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        decode(code, &mut out)?;
        Ok(out)
    }

    /// RFC 7541, C.4 and C.6.
    #[test]
    fn strings_of_the_rfc() {
        let samples: [(&str, &[u8]); 6] = [
            (
                "www.example.com",
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (
                "custom-key",
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f],
            ),
            (
                "custom-value",
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf],
            ),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (text, code) in samples {
            assert_eq!(encoded(text.as_bytes()), code);
            assert_eq!(decoded(code).unwrap(), text.as_bytes());
        }
    }

    /// RFC 7541, B: some lines of the table, one of each end of it.
    #[test]
    fn codes_of_the_appendix() {
        for (symbol, code, length) in [
            (b'n', 0x2a, 6),
            (b'z', 0x7b, 7),
            (b'{', 0x7ffe, 15),
            (22, 0x3fff_fffe, 30),
            (128, 0xfffe6, 20),
            (142, 0x00ff_ffeb, 24),
            (195, 0x7fff1, 19),
            (199, 0x01ff_ffec, 25),
            (254, 0x07ff_fff0, 27),
            (255, 0x03ff_ffee, 26),
        ] {
            let symbol = usize::from(symbol);
            assert_eq!(
                (TABLES.codes[symbol], TABLES.lengths[symbol]),
                (code, length)
            );
        }
    }

    #[test]
    fn every_byte_comes_back_beside_every_other() {
        for a in 0..=255 {
            for b in 0..=255 {
                let text = [a, b, a];
                assert_eq!(decoded(&encoded(&text)).unwrap(), text);
            }
        }
    }

    #[test]
    fn random_strings_come_back() {
        let mut random = Random::from_seed([7; 32]);
        for length in 0..300 {
            let mut text = vec![0; length];
            random.fill(&mut text);
            assert_eq!(decoded(&encoded(&text)).unwrap(), text);
            // What is no code is an error or some text, never a panic.
            if let Ok(other) = decoded(&text) {
                assert!(other.len() <= text.len() * 8 / 5);
            }
        }
    }

    /// RFC 7541, 5.2: padding of more than 7 bits, or not of ones, or EOS itself, is an error.
    #[test]
    fn bad_padding_and_eos_are_errors() {
        assert_eq!(decoded(&[0xff]), Err(Malformed));
        assert_eq!(decoded(&[0x07, 0xff]), Err(Malformed));
        assert_eq!(decoded(&[0x07]).unwrap(), b"0");
        assert_eq!(decoded(&[0x06]), Err(Malformed));
        assert_eq!(decoded(&[0xff; 4]), Err(Malformed));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), Err(Malformed));
        assert_eq!(decoded(&[0xff; 100]), Err(Malformed));
        assert_eq!(decoded(&[]).unwrap(), b"");
    }
}
