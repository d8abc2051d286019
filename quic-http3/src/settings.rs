//! SETTINGS, [RFC 9114, section 7.2.4](https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4).

use quic_common::{Reader, Writer};

use crate::error::{Code, Error};
use crate::limits::{MAX_BLOCKED_STREAMS, MAX_DECODER_CAPACITY, MAX_FIELD_SECTION};

/// What an endpoint says about itself in its SETTINGS frame; what is absent has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The largest field section that it accepts, counted as names, values and 32 bytes for each line; `None` is no limit.
    pub max_field_section: Option<u64>,
    /// The capacity of the QPACK dynamic table that it allows its peer.
    pub qpack_capacity: u64,
    /// How many streams it lets wait for the dynamic table.
    pub qpack_blocked_streams: u64,
    /// Whether it takes extended CONNECT requests (RFC 9220).
    pub extended_connect: bool,
    /// Whether it takes HTTP datagrams (RFC 9297).
    pub datagrams: bool,
}

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;
/// An identifier of the form 0x1f * N + 0x21, which means nothing and must be ignored (RFC 9114, 7.2.4.1).
const GREASE: u64 = 0x1f * 0x2a5d + 0x21;

impl Settings {
    /// What this crate says.
    pub(crate) const fn local() -> Self {
        Self {
            max_field_section: Some(MAX_FIELD_SECTION),
            qpack_capacity: MAX_DECODER_CAPACITY,
            qpack_blocked_streams: MAX_BLOCKED_STREAMS,
            extended_connect: false,
            datagrams: false,
        }
    }

    /// Checks that a client which has kept to `earlier` has kept to these too.
    ///
    /// # Errors
    ///
    /// H3_SETTINGS_ERROR when a limit has shrunk or a promise is broken (RFC 9114, 7.2.4.2; RFC 9297, 2.1.1), and
    /// QPACK_DECODER_STREAM_ERROR when the dynamic table is another one (RFC 9204, 3.2.3).
    pub(crate) fn keep(&self, earlier: &Self) -> Result<(), Error> {
        if earlier.qpack_capacity != 0 && self.qpack_capacity != earlier.qpack_capacity {
            return Err(Error::new(
                Code::QPACK_DECODER_STREAM_ERROR,
                "the QPACK table is not the one that early data relied on",
            ));
        }
        // No limit is the default; a server may not fall back to that either, once it has set one.
        let has_same_section = match (earlier.max_field_section, self.max_field_section) {
            (Some(then), Some(now)) => now >= then,
            (then, now) => then == now,
        };
        let keeps = has_same_section
            && self.qpack_blocked_streams >= earlier.qpack_blocked_streams
            && self.extended_connect >= earlier.extended_connect
            && self.datagrams >= earlier.datagrams;
        if keeps {
            return Ok(());
        }
        Err(Error::new(
            Code::SETTINGS_ERROR,
            "a setting is less than what early data relied on",
        ))
    }

    /// Reads the payload of a SETTINGS frame.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let cut = |_| Error::new(Code::FRAME_ERROR, "a setting is cut short");
            let id = reader.varint().map_err(cut)?;
            let value = reader.varint().map_err(cut)?;
            settings.set(id, value)?;
            seen.push(id);
        }
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Error::new(Code::SETTINGS_ERROR, "a setting occurs twice"));
        }
        Ok(settings)
    }

    fn set(&mut self, id: u64, value: u64) -> Result<(), Error> {
        match id {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_capacity = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section = Some(value),
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            ENABLE_CONNECT_PROTOCOL => self.extended_connect = flag(value)?,
            H3_DATAGRAM => self.datagrams = flag(value)?,
            0x00 | 0x02..=0x05 => {
                let reason = "a setting of HTTP/2 that HTTP/3 doesn't have";
                return Err(Error::new(Code::SETTINGS_ERROR, reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the payload of a SETTINGS frame, with one setting that must be ignored.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let settings = [
            (QPACK_MAX_TABLE_CAPACITY, Some(self.qpack_capacity)),
            (MAX_FIELD_SECTION_SIZE, self.max_field_section),
            (QPACK_BLOCKED_STREAMS, Some(self.qpack_blocked_streams)),
            (ENABLE_CONNECT_PROTOCOL, self.extended_connect.then_some(1)),
            (H3_DATAGRAM, self.datagrams.then_some(1)),
            (GREASE, Some(0)),
        ];
        for (id, value) in settings {
            let Some(value) = value else { continue };
            let mut space = [0; 16];
            let mut writer = Writer::new(&mut space);
            if writer.varint(id) && writer.varint(value) {
                out.extend_from_slice(writer.written());
            }
        }
    }
}

const fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(
            Code::SETTINGS_ERROR,
            "a flag is neither 0 nor 1",
        )),
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::Settings;
    use crate::error::Code;

    fn code(payload: &[u8]) -> Code {
        Settings::parse(payload).unwrap_err().code
    }

    #[test]
    fn settings_come_back() {
        for settings in [
            Settings::local(),
            Settings {
                max_field_section: None,
                qpack_capacity: 4096,
                qpack_blocked_streams: 100,
                extended_connect: true,
                datagrams: true,
            },
        ] {
            let mut payload = Vec::new();
            settings.encode(&mut payload);
            assert_eq!(Settings::parse(&payload), Ok(settings));
        }
        assert_eq!(Settings::parse(&[]), Ok(Settings::default()));
    }

    /// RFC 9114, 7.2.4.2, RFC 9204, 3.2.3 and RFC 9297, 2.1.1: what early data relied on must hold.
    #[test]
    fn what_early_data_relied_on_must_hold() {
        type Change = fn(&mut Settings);
        let earlier = Settings {
            max_field_section: Some(1000),
            qpack_capacity: 0,
            qpack_blocked_streams: 10,
            extended_connect: true,
            datagrams: true,
        };
        assert_eq!(earlier.keep(&earlier), Ok(()));
        let grown = Settings {
            max_field_section: Some(1001),
            qpack_capacity: 100,
            qpack_blocked_streams: 11,
            ..earlier
        };
        assert_eq!(grown.keep(&earlier), Ok(()));
        let changes: [Change; 5] = [
            |s| s.max_field_section = Some(999),
            |s| s.max_field_section = None,
            |s| s.qpack_blocked_streams = 9,
            |s| s.extended_connect = false,
            |s| s.datagrams = false,
        ];
        for change in changes {
            let mut now = earlier;
            change(&mut now);
            let code = now.keep(&earlier).unwrap_err().code;
            assert_eq!(code, Code::SETTINGS_ERROR);
        }
        for capacity in [0, 99, 101] {
            let now = Settings {
                qpack_capacity: capacity,
                ..earlier
            };
            let code = now.keep(&grown_to(100, earlier)).unwrap_err().code;
            assert_eq!(code, Code::QPACK_DECODER_STREAM_ERROR);
        }
    }

    fn grown_to(qpack_capacity: u64, settings: Settings) -> Settings {
        Settings {
            qpack_capacity,
            ..settings
        }
    }

    /// RFC 9114, 7.2.4: the same identifier must not occur twice, known or not.
    #[test]
    fn duplicates_are_refused() {
        assert_eq!(code(&[0x06, 1, 0x06, 1]), Code::SETTINGS_ERROR);
        assert_eq!(code(&[0x21, 1, 0x06, 1, 0x21, 2]), Code::SETTINGS_ERROR);
    }

    /// RFC 9114, 7.2.4.1: settings of HTTP/2 are refused.
    #[test]
    fn settings_of_http2_are_refused() {
        for id in [0x00, 0x02, 0x03, 0x04, 0x05] {
            assert_eq!(code(&[id, 1]), Code::SETTINGS_ERROR);
        }
    }

    /// RFC 9220, 3 and RFC 9297, 2.1.1: flags are 0 or 1.
    #[test]
    fn flags_are_flags() {
        assert_eq!(code(&[0x08, 2]), Code::SETTINGS_ERROR);
        assert_eq!(code(&[0x33, 2]), Code::SETTINGS_ERROR);
        assert!(Settings::parse(&[0x08, 0, 0x33, 1]).unwrap().datagrams);
    }

    /// RFC 9114, 7.1: a payload that ends inside a field is a frame error.
    #[test]
    fn cut_settings_are_frame_errors() {
        assert_eq!(code(&[0x06]), Code::FRAME_ERROR);
        assert_eq!(code(&[0x06, 0x40]), Code::FRAME_ERROR);
        assert_eq!(code(&[0x40]), Code::FRAME_ERROR);
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut random = Random::from_seed([5; 32]);
        for round in 0_usize..5000 {
            let mut payload = vec![0; round % 40];
            random.fill(&mut payload);
            if let Ok(settings) = Settings::parse(&payload) {
                let mut again = Vec::new();
                settings.encode(&mut again);
                assert_eq!(Settings::parse(&again), Ok(settings));
            }
        }
    }
}
