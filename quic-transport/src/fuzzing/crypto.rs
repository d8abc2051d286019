//! The byte streams of the handshake, and the first message in them.

use quic_common::Reader;

use super::{byte, pattern, short, wide};
use crate::crypto_stream::CryptoStream;
use crate::limits::CRYPTO_BUFFER;
use crate::tls::ClientHello;
use crate::transmit::{FrameLog, PacketWriter, SentFrame};
use crate::wire::{Frame, Frames};

/// Carries a handshake's bytes from one end to the other in packets whose sizes, losses and order the bytes choose.
///
/// What arrives is what was sent; data too far ahead is refused, and nothing else is.
pub fn crypto(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let mut model = Model {
        sender: CryptoStream::default(),
        receiver: CryptoStream::default(),
        log: FrameLog::new(),
        packets: Vec::new(),
        written: 0,
        read: 0,
    };
    while model.step(&mut input).is_some() {}
    model.deliver_all();
}

struct Model {
    sender: CryptoStream,
    receiver: CryptoStream,
    log: FrameLog,
    packets: Vec<Packet>,
    written: usize,
    read: usize,
}

/// A packet on its way.
struct Packet {
    payload: Vec<u8>,
    records: Vec<SentFrame>,
}

impl Model {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = byte(input)?;
        match operation % 8 {
            0 => {
                let end = self.written + short(input)? % 5000;
                // Never more than the receiver must take.
                let end = end.min(self.read + usize::try_from(CRYPTO_BUFFER).unwrap());
                let data: Vec<u8> = (self.written..end).map(pattern).collect();
                self.sender.send(&data);
                self.written = end.max(self.written);
            }
            1 | 2 => self.send(short(input)? % 1500),
            3 | 4 => {
                if let Some(packet) = self.choose(byte(input)?) {
                    self.arrive(&packet);
                    for record in packet.records {
                        let SentFrame::Crypto { offset, length } = record else {
                            continue;
                        };
                        self.sender.on_acked(offset, length);
                    }
                }
            }
            5 => {
                if let Some(packet) = self.choose(byte(input)?) {
                    // A loss that turns out to be none.
                    if operation & 8 != 0 {
                        self.arrive(&packet);
                    }
                    self.lose(packet);
                }
            }
            6 => self.read(short(input)?),
            _ if operation & 8 != 0 => self.sender.resend(),
            _ => self.outsider(input.varint().ok()?, byte(input)?),
        }
        Some(())
    }

    fn send(&mut self, room: usize) {
        let mut payload = vec![0; room];
        let mut packet = PacketWriter::new(&mut payload, &mut self.log);
        self.sender.write(&mut packet);
        let written = packet.finish();
        payload.truncate(written.length);
        assert!(room < 100 || !payload.is_empty() || !self.sender.has_pending_frames());
        let records = (written.frames_start..)
            .take(written.frames_count.into())
            .map(|index| self.log.get(index).unwrap())
            .collect();
        self.log.release_to(self.log.next_index());
        if !payload.is_empty() {
            self.packets.push(Packet { payload, records });
        }
    }

    fn choose(&mut self, place: usize) -> Option<Packet> {
        let count = self.packets.len();
        (count > 0).then(|| self.packets.swap_remove(place % count))
    }

    fn arrive(&mut self, packet: &Packet) {
        for frame in Frames::new(&packet.payload).unwrap() {
            let frame = frame.unwrap();
            let Frame::Crypto { offset, data } = frame else {
                panic!("{frame:?}");
            };
            self.receiver.on_crypto(offset, data).unwrap();
        }
    }

    fn lose(&mut self, packet: Packet) {
        for record in packet.records {
            if let SentFrame::Crypto { offset, length } = record {
                self.sender.on_lost(offset, length);
            }
        }
    }

    fn read(&mut self, most: usize) {
        let data = self.receiver.fill();
        let used = most.min(data.len());
        let expected = (self.read..).map(pattern);
        assert!(data.iter().copied().zip(expected).all(|(a, b)| a == b));
        self.receiver.consume(used);
        self.read += used;
    }

    /// Data from elsewhere: true to the stream where it lies inside, refused where it is too far ahead.
    fn outsider(&mut self, offset: u64, length: usize) {
        let offset = if offset < 1 << 14 {
            offset + wide(self.read)
        } else {
            offset
        };
        let end = offset.saturating_add(wide(length));
        let is_far = end > wide(self.read) + CRYPTO_BUFFER;
        if !is_far && end > wide(self.written) {
            return;
        }
        let start = usize::try_from(offset).unwrap_or(0);
        let data: Vec<u8> = (start..).take(length).map(pattern).collect();
        let taken = self.receiver.on_crypto(offset, &data);
        assert_eq!(taken.is_err(), is_far);
    }

    /// In the end, when nothing is lost any more, all arrives.
    fn deliver_all(&mut self) {
        for packet in std::mem::take(&mut self.packets) {
            self.lose(packet);
        }
        while self.sender.has_pending_frames() {
            self.send(1200);
            let packet = self.packets.pop().unwrap();
            self.arrive(&packet);
            for record in packet.records {
                if let SentFrame::Crypto { offset, length } = record {
                    self.sender.on_acked(offset, length);
                }
            }
            self.read(usize::MAX);
        }
        while !self.receiver.fill().is_empty() {
            self.read(usize::MAX);
        }
        assert!(self.sender.is_acked());
        assert_eq!(self.read, self.written);
        assert!(!self.receiver.has_unread());
    }
}

/// Reads a ClientHello from the bytes, whole and as it arrives.
///
/// What is found in a part of the bytes is found in all of them, and an error stays one.
pub fn client_hello(bytes: &[u8]) {
    let whole = ClientHello::parse(bytes);
    if let Ok(Some(hello)) = &whole {
        assert!(hello.server_name.is_none_or(|name| name.len() <= 255));
        assert!(hello.alpn().all(|name| !name.is_empty()));
        assert!(hello.alpn().count() <= bytes.len());
        assert!(
            hello
                .transport_parameters
                .is_none_or(|p| p.len() < bytes.len())
        );
    }
    let step = 1 + bytes.len() / 32;
    for length in (0..bytes.len()).step_by(step) {
        let part = ClientHello::parse(&bytes[..length]);
        assert!(matches!(part, Ok(None)) || part == whole, "at {length}");
    }
}
