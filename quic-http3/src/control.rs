//! What the peer sends on its unidirectional streams, [RFC 9114, section 6.2](https://www.rfc-editor.org/rfc/rfc9114#section-6.2).
//!
//! The control stream's frames are small and are held until complete; unknown ones are skipped as they come.

use quic_common::Reader;
use quic_transport::Side;

use crate::error::{Code, Error};
use crate::frame::{FrameHeader, HeaderReader, Kind};
use crate::limits::{MAX_CONTROL_FRAME, MAX_PRIORITY_VALUE};
use crate::priority::Priority;
use crate::settings::Settings;

/// A unidirectional stream of the peer.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Its type is not known yet.
    Untyped(TypeReader),
    Control(Box<Control>),
    Encoder,
    Decoder,
}

/// The type of a unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamType(pub(crate) u64);

impl StreamType {
    pub(crate) const CONTROL: Self = Self(0x00);
    pub(crate) const PUSH: Self = Self(0x01);
    pub(crate) const ENCODER: Self = Self(0x02);
    pub(crate) const DECODER: Self = Self(0x03);
}

/// Reads the variable-length integer that a unidirectional stream begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypeReader {
    held: [u8; 8],
    count: u8,
}

impl TypeReader {
    /// Reads from the front of `input`: how many bytes were used, and the type if it is complete.
    pub(crate) fn read(&mut self, input: &[u8]) -> (usize, Option<StreamType>) {
        let mut used = 0;
        for byte in input {
            if let Some(place) = self.held.get_mut(usize::from(self.count)) {
                *place = *byte;
            }
            self.count += 1;
            used += 1;
            let held = self.held.get(..usize::from(self.count)).unwrap_or_default();
            if let Ok(value) = Reader::new(held).varint() {
                return (used, Some(StreamType(value)));
            }
        }
        (used, None)
    }
}

/// What a control stream tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Settings(Settings),
    /// No requests or pushes from this ID on.
    GoAway(u64),
    MaxPushId(u64),
    CancelPush(u64),
    /// How urgent the response on a stream is.
    Priority(u64, Priority),
    PushPriority(u64),
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Header,
    Payload {
        kind: Kind,
        length: usize,
    },
    Skip {
        left: u64,
    },
}

/// The peer's control stream.
#[derive(Debug, Default)]
pub(crate) struct Control {
    header: HeaderReader,
    state: State,
    payload: Vec<u8>,
    /// SETTINGS has been read.
    is_set: bool,
}

/// What a step along the control stream gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All input was used.
    Used,
    /// Something was told; the count is that of the bytes used.
    Told(usize, Told),
    /// An unknown frame begins; the count is that of the bytes used.
    Unknown(usize),
}

impl Control {
    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.payload.shrink_to_fit();
    }

    /// Reads from the front of `input` up to the first thing that it tells.
    pub(crate) fn read(&mut self, side: Side, input: &[u8]) -> Result<Progress, Error> {
        let mut used = 0;
        // Each turn uses input, ends a frame, or returns.
        while let Some(rest) = input.get(used..) {
            match self.state {
                State::Header if rest.is_empty() => break,
                State::Header => {
                    let (taken, header) = self.header.read(rest);
                    used += taken;
                    let Some(header) = header else { break };
                    self.on_frame(side, header)?;
                    if matches!(self.state, State::Skip { .. }) {
                        return Ok(Progress::Unknown(used));
                    }
                }
                State::Payload { kind, length } => {
                    let wanted = length.saturating_sub(self.payload.len());
                    let part = rest.get(..wanted).unwrap_or(rest);
                    self.payload.extend_from_slice(part);
                    used += part.len();
                    if part.len() < wanted {
                        break;
                    }
                    let told = tell(kind, &self.payload)?;
                    self.payload.clear();
                    self.state = State::Header;
                    return Ok(Progress::Told(used, told));
                }
                State::Skip { left: 0 } => self.state = State::Header,
                State::Skip { .. } if rest.is_empty() => break,
                State::Skip { left } => {
                    let taken =
                        usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    used += taken;
                    let taken = u64::try_from(taken).unwrap_or(left);
                    self.state = State::Skip { left: left - taken };
                }
            }
        }
        Ok(Progress::Used)
    }

    /// Whether a frame may come now, and how to read it.
    fn on_frame(&mut self, side: Side, header: FrameHeader) -> Result<(), Error> {
        let FrameHeader { kind, length } = header;
        if !self.is_set && kind != Kind::SETTINGS {
            let reason = "the control stream doesn't begin with SETTINGS";
            return Err(Error::new(Code::MISSING_SETTINGS, reason));
        }
        let unexpected = |reason| Err(Error::new(Code::FRAME_UNEXPECTED, reason));
        let most = match kind {
            Kind::SETTINGS if self.is_set => return unexpected("SETTINGS for the second time"),
            Kind::SETTINGS => MAX_CONTROL_FRAME,
            Kind::MAX_PUSH_ID if side.is_client() => {
                return unexpected("MAX_PUSH_ID from a server");
            }
            Kind::PRIORITY_UPDATE | Kind::PUSH_PRIORITY_UPDATE if side.is_client() => {
                return unexpected("PRIORITY_UPDATE from a server");
            }
            Kind::PRIORITY_UPDATE | Kind::PUSH_PRIORITY_UPDATE => 8 + MAX_PRIORITY_VALUE,
            // One variable-length integer.
            Kind::GOAWAY | Kind::MAX_PUSH_ID | Kind::CANCEL_PUSH => 8,
            Kind::DATA | Kind::HEADERS | Kind::PUSH_PROMISE => {
                return unexpected("a frame of a message on the control stream");
            }
            kind if kind.is_reserved() => return unexpected("a frame of HTTP/2"),
            _ => {
                self.state = State::Skip { left: length };
                return Ok(());
            }
        };
        self.is_set = true;
        self.state = match usize::try_from(length) {
            Ok(wanted) if length <= most => State::Payload {
                kind,
                length: wanted,
            },
            _ if most > 8 => {
                let reason = "SETTINGS or a priority is too long";
                return Err(Error::new(Code::EXCESSIVE_LOAD, reason));
            }
            _ => {
                return Err(Error::new(
                    Code::FRAME_ERROR,
                    "a frame is too long for an ID",
                ));
            }
        };
        Ok(())
    }
}

/// Reads a complete payload.
fn tell(kind: Kind, payload: &[u8]) -> Result<Told, Error> {
    if kind == Kind::SETTINGS {
        return Settings::parse(payload).map(Told::Settings);
    }
    let mut reader = Reader::new(payload);
    let has_value = matches!(kind, Kind::PRIORITY_UPDATE | Kind::PUSH_PRIORITY_UPDATE);
    let id = reader.varint().ok();
    let id = id.filter(|_| has_value || reader.is_empty());
    let id = id.ok_or(Error::new(
        Code::FRAME_ERROR,
        "a frame is not exactly one ID long",
    ))?;
    Ok(match kind {
        Kind::GOAWAY => Told::GoAway(id),
        Kind::MAX_PUSH_ID => Told::MaxPushId(id),
        Kind::PRIORITY_UPDATE => Told::Priority(id, Priority::default().with(reader.rest())),
        Kind::PUSH_PRIORITY_UPDATE => Told::PushPriority(id),
        _ => Told::CancelPush(id),
    })
}

#[cfg(test)]
mod tests {
    use quic_transport::Side;

    use super::{Control, Progress, StreamType, Told, TypeReader};
    use crate::error::Code;
    use crate::limits::MAX_CONTROL_FRAME;
    use crate::settings::Settings;

    /// All that is told by a control stream, read `step` bytes at a time.
    fn read(side: Side, bytes: &[u8], step: usize) -> Result<Vec<Told>, Code> {
        let mut control = Control::default();
        let mut told = Vec::new();
        for mut part in bytes.chunks(step) {
            loop {
                match control.read(side, part).map_err(|e| e.code)? {
                    Progress::Used => break,
                    Progress::Told(used, one) => {
                        told.push(one);
                        part = &part[used..];
                    }
                    Progress::Unknown(used) => part = &part[used..],
                }
            }
        }
        Ok(told)
    }

    #[test]
    fn frames_are_told_from_any_cut() {
        let bytes = [
            &[0x04, 0x02, 0x08, 0x01][..],
            &[0x21, 0x05, 1, 2, 3, 4, 5],
            &[0x40, 0x21, 0x00],
            &[0x07, 0x02, 0x40, 0x08],
            &[0x07, 0x01, 0x04],
        ]
        .concat();
        let settings = Settings {
            extended_connect: true,
            ..Settings::default()
        };
        let expected = vec![Told::Settings(settings), Told::GoAway(8), Told::GoAway(4)];
        for step in 1..=bytes.len() {
            assert_eq!(read(Side::Client, &bytes, step), Ok(expected.clone()));
        }
    }

    /// RFC 9114, 6.2.1: SETTINGS comes first, and once (7.2.4).
    #[test]
    fn settings_come_first_and_once() {
        for side in [Side::Client, Side::Server] {
            let first = |kind| read(side, &[kind, 1, 0], 9);
            for kind in [0x00, 0x01, 0x03, 0x05, 0x07, 0x0d, 0x21, 0x02] {
                assert_eq!(first(kind), Err(Code::MISSING_SETTINGS));
            }
            let twice = read(side, &[4, 0, 4, 0], 9);
            assert_eq!(twice, Err(Code::FRAME_UNEXPECTED));
        }
    }

    /// RFC 9114, 7.2: what belongs on other streams, or in HTTP/2 (7.2.8).
    #[test]
    fn foreign_frames_are_unexpected() {
        for kind in [0x00, 0x01, 0x05, 0x02, 0x06, 0x08, 0x09] {
            let result = read(Side::Server, &[4, 0, kind, 1, 0], 9);
            assert_eq!(result, Err(Code::FRAME_UNEXPECTED), "{kind}");
        }
        let from_server = read(Side::Client, &[4, 0, 0x0d, 1, 0], 9);
        assert_eq!(from_server, Err(Code::FRAME_UNEXPECTED));
        let from_client = read(Side::Server, &[4, 0, 0x0d, 1, 7], 9).unwrap();
        assert_eq!(from_client.last(), Some(&Told::MaxPushId(7)));
    }

    /// RFC 9114, 7.1: a payload is exactly as long as its fields.
    #[test]
    fn wrong_lengths_are_frame_errors() {
        for frame in [
            &[0x03, 0x00][..],
            &[0x03, 0x02, 0x01, 0x01],
            &[0x07, 0x01, 0x40],
            &[0x03, 0x09],
            &[0x0d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            let bytes = [&[4, 0], frame].concat();
            assert_eq!(read(Side::Server, &bytes, 99), Err(Code::FRAME_ERROR));
        }
    }

    /// The bound on SETTINGS: at the cap, and one byte more.
    #[test]
    fn the_limit_on_settings_is_exact() {
        let length = u16::try_from(MAX_CONTROL_FRAME).unwrap();
        let settings = |length: u16| {
            let mut bytes = vec![4];
            bytes.extend_from_slice(&(length | 0x4000).to_be_bytes());
            // Distinct two-byte identifiers with one-byte values, and one of one byte to come out even.
            let mut payload = vec![0x21, 0x00, 0x22, 0x40, 0x00];
            for id in 0x4040_u16.. {
                payload.extend_from_slice(&id.to_be_bytes());
                payload.push(0);
                if payload.len() + 3 > usize::from(length) {
                    break;
                }
            }
            bytes.extend_from_slice(&payload);
            (bytes, payload.len())
        };
        let (bytes, held) = settings(length);
        assert!(held <= usize::from(length) && held + 3 > usize::from(length));
        let fits = &bytes[..3 + held];
        let told = read(Side::Client, fits, 1000).unwrap();
        assert_eq!(told.len(), usize::from(held == usize::from(length)));
        let (bytes, _) = settings(length + 1);
        assert_eq!(read(Side::Client, &bytes, 1000), Err(Code::EXCESSIVE_LOAD));
    }

    #[test]
    fn a_stream_type_comes_from_any_cut() {
        for bytes in [
            &[0x02][..],
            &[0x40, 0x02],
            &[0x80, 0, 0, 2],
            &[0xc0, 0, 0, 0, 0, 0, 0, 2],
        ] {
            let mut reader = TypeReader::default();
            for (index, byte) in bytes.iter().enumerate() {
                let expected = (index + 1 == bytes.len()).then_some(StreamType(2));
                assert_eq!(reader.read(&[*byte]), (1, expected));
            }
        }
    }
}
