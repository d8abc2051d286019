//! The parts of QUIC that either program can do without.

use clap::Args;
use quic_transport::Config;

/// What is turned off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Extensions {
    /// Don't let the network see the round-trip time: no spin bit.
    #[arg(long)]
    pub no_spin_bit: bool,

    /// Don't ask for fewer acknowledgments (ACK_FREQUENCY), nor let the other end ask.
    #[arg(long)]
    pub no_ack_frequency: bool,

    /// Set the bits that mean nothing to their usual values, not at random.
    #[arg(long)]
    pub no_grease: bool,
}

impl Extensions {
    /// The settings, with this turned off.
    #[must_use]
    pub const fn apply(self, mut config: Config) -> Config {
        config.spin_bit = !self.no_spin_bit;
        config.ack_frequency = !self.no_ack_frequency;
        config.grease = !self.no_grease;
        config
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use quic_transport::Config;

    use super::Extensions;
    use crate::cli::{Client, Server};

    #[test]
    fn each_switch_turns_one_thing_off() {
        let defaults = Config::default();
        assert_eq!(Extensions::default().apply(defaults.clone()), defaults);
        let settings = |flag| {
            let client = Client::try_parse_from(["quic-client", "https://a/", flag]).unwrap();
            let server = Server::try_parse_from(["quic-server", "--dir", ".", flag]).unwrap();
            assert_eq!(client.extensions, server.extensions);
            let config = client.extensions.apply(Config::default());
            (config.spin_bit, config.ack_frequency, config.grease)
        };
        assert_eq!(settings("--no-spin-bit"), (false, true, true));
        assert_eq!(settings("--no-ack-frequency"), (true, false, true));
        assert_eq!(settings("--no-grease"), (true, true, false));
    }
}
