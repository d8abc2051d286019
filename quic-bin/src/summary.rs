//! What a transfer looked like, for a person.

use std::{fmt, time::Duration};

use quic_udp::{BufferSize, Counters};

use crate::format::{duration, grouped, quotient, rate, size};

/// The figures of one connection. Those that aren't known are left out.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Bytes of the bodies, and how long they took from the first request on.
    pub transfer: Option<Transfer>,
    /// From the first packet to the completed handshake.
    pub handshake: Option<Duration>,
    /// The smoothed round-trip time at the end.
    pub smoothed_rtt: Option<Duration>,
    /// QUIC packets.
    pub packets: Option<Packets>,
    /// The largest datagram that the path was found to take.
    pub path_mtu: Option<u16>,
    /// What has become of the connection's paths, a line for each change.
    pub paths: Vec<String>,
    /// What the socket did.
    pub socket: Option<Counters>,
    /// The kernel's buffers for sending and receiving.
    pub buffers: Option<(BufferSize, BufferSize)>,
    /// The QUIC version.
    pub version: Option<String>,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The key exchange group.
    pub group: Option<String>,
    /// The congestion controller.
    pub congestion_control: Option<String>,
}

/// How much in how much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes of all bodies.
    pub bytes: u64,
    /// The time that they took.
    pub elapsed: Duration,
    /// Whether every byte was compared with what it should be.
    pub verified: bool,
}

/// Counts of QUIC packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Sent.
    pub sent: u64,
    /// Received, and could be decrypted.
    pub received: u64,
    /// Of those sent, declared lost.
    pub lost: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &str| writeln!(f, "{name:<20} {value}");
        if let Some(transfer) = self.transfer {
            let verified = if transfer.verified {
                ", all verified"
            } else {
                ""
            };
            let bytes = grouped(transfer.bytes);
            row(
                "bytes",
                &format!("{bytes} ({}){verified}", size(transfer.bytes)),
            )?;
            row("time", &duration(transfer.elapsed))?;
            row("rate", &rate(transfer.bytes, transfer.elapsed))?;
        }
        if let Some(time) = self.handshake {
            row("handshake", &duration(time))?;
        }
        if let Some(time) = self.smoothed_rtt {
            row("smoothed RTT", &duration(time))?;
        }
        if let Some(Packets {
            sent,
            received,
            lost,
        }) = self.packets
        {
            let [sent, received, lost] = [sent, received, lost].map(grouped);
            row(
                "packets",
                &format!("{sent} sent, {received} received, {lost} lost"),
            )?;
        }
        if let Some(counters) = self.socket {
            let sent = quotient(counters.sent_datagrams, counters.sent_calls);
            let received = quotient(counters.received_datagrams, counters.received_calls);
            row(
                "datagrams per call",
                &format!("{sent} sent, {received} received"),
            )?;
        }
        if let Some(mtu) = self.path_mtu {
            row("path MTU", &format!("{mtu} bytes of UDP payload"))?;
        }
        for (place, change) in self.paths.iter().enumerate() {
            row(if place == 0 { "path" } else { "" }, change)?;
        }
        if let Some((send, receive)) = self.buffers {
            let [sending, receiving] = [send, receive].map(|buffer| size(as_u64(buffer.granted)));
            row(
                "socket buffers",
                &format!("{sending} send, {receiving} receive"),
            )?;
            if let Some(hint) = hint(send, receive) {
                row("", &hint)?;
            }
        }
        for (name, value) in [
            ("QUIC version", &self.version),
            ("cipher", &self.cipher),
            ("key exchange", &self.group),
            ("congestion control", &self.congestion_control),
        ] {
            if let Some(value) = value {
                row(name, value)?;
            }
        }
        Ok(())
    }
}

/// How to get larger buffers, when the kernel gave smaller ones than it was asked for.
fn hint(send: BufferSize, receive: BufferSize) -> Option<String> {
    let clamped = [("wmem_max", send), ("rmem_max", receive)].map(|(name, buffer)| {
        let wanted = buffer.wanted;
        buffer
            .is_clamped()
            .then(|| format!("net.core.{name}={wanted}"))
    });
    let settings: Vec<String> = clamped.into_iter().flatten().collect();
    if settings.is_empty() {
        return None;
    }
    Some(if cfg!(any(target_os = "linux", target_os = "android")) {
        format!(
            "smaller than asked for; more with: sysctl -w {}",
            settings.join(" ")
        )
    } else {
        "smaller than asked for; the system's limit for socket buffers can be raised".to_owned()
    })
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quic_udp::Socket;

    use super::{Packets, Summary, Transfer};

    #[test]
    fn every_known_figure_has_its_row() {
        let mut socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let buffers = socket.resize_buffers(100_000, 1 << 40).unwrap();
        let summary = Summary {
            transfer: Some(Transfer {
                bytes: 1 << 30,
                elapsed: Duration::from_millis(859),
                verified: true,
            }),
            handshake: Some(Duration::from_micros(640)),
            smoothed_rtt: Some(Duration::from_micros(210)),
            packets: Some(Packets {
                sent: 1000,
                received: 739_000,
                lost: 0,
            }),
            path_mtu: Some(1452),
            paths: vec!["rebound to a".to_owned(), "path changed: from b".to_owned()],
            socket: Some(socket.counters()),
            buffers: Some(buffers),
            version: Some("v1".to_owned()),
            cipher: Some("TLS13_AES_128_GCM_SHA256".to_owned()),
            group: Some("X25519".to_owned()),
            congestion_control: Some("CUBIC".to_owned()),
        };
        let text = summary.to_string();
        for part in [
            "bytes                1 073 741 824 (1.00 GiB), all verified\n",
            "time                 859.00 ms\n",
            "rate                 10.00 Gbit/s\n",
            "handshake            640 us\n",
            "smoothed RTT         210 us\n",
            "packets              1 000 sent, 739 000 received, 0 lost\n",
            "datagrams per call   - sent, - received\n",
            "path MTU             1452 bytes of UDP payload\n",
            "path                 rebound to a\n                     path changed: from b\n",
            "socket buffers       97.66 KiB send, ",
            "QUIC version         v1\n",
            "cipher               TLS13_AES_128_GCM_SHA256\n",
            "key exchange         X25519\n",
            "congestion control   CUBIC\n",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(text.matches("smaller than asked for").count(), 1, "{text}");
        assert!(!text.contains("wmem_max"), "{text}");
    }

    #[test]
    fn unknown_figures_are_left_out() {
        assert_eq!(Summary::default().to_string(), "");
    }
}
