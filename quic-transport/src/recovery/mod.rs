//! Sent packets and how their fate is learnt, [RFC 9002, section 6](https://www.rfc-editor.org/rfc/rfc9002#section-6).

mod numbers;
mod sent_packet;
mod late;
mod sent_packets;
mod outcomes;
mod timer;

pub(crate) use late::Spurious;
pub(crate) use numbers::PacketNumbers;
pub(crate) use outcomes::Outcomes;
pub(crate) use sent_packet::{Acked, Lost, PacketFlags, SentPacket};
pub(crate) use sent_packets::{Losses, SentPackets};
pub(crate) use timer::{Expiry, HandshakeProgress, LossTimer, TimerState};
