//! msquic with its defaults, for the comparison: `server` and `client` as `src/peers/programs.rs` there wants them.
//!
//! A stream begins with how many bytes the server is to send and how many follow, in eight bytes each. Streams are not
//! buffered by msquic: pieces are lent to it, two at a time, as its own performance tool does for throughput.

mod sending;
mod server;
mod client;

use std::{error::Error, path::PathBuf};

use msquic::{
    AllowedCipherSuiteFlags, Api, BufferRef, Configuration, CredentialConfig, ExecutionProfile,
    Registration, RegistrationConfig, Settings, ffi::QUIC_PARAM_CONFIGURATION_SETTINGS,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What both ends are told.
struct Arguments {
    port: u16,
    certificates: PathBuf,
    work: String,
    amount: u64,
    parallel: u64,
}

impl Arguments {
    fn read(arguments: &[String]) -> Outcome<Self> {
        let [_host, port, certificates, work, amount, parallel] = arguments else {
            return Err("HOST PORT CERTS WORK AMOUNT PARALLEL are wanted".into());
        };
        Ok(Self {
            port: port.parse()?,
            certificates: certificates.into(),
            work: work.clone(),
            amount: amount.parse()?,
            parallel: parallel.parse()?,
        })
    }

    fn file(&self, name: &str) -> String {
        self.certificates.join(name).display().to_string()
    }

    fn is_bulk(&self) -> bool {
        matches!(self.work.as_str(), "download" | "upload")
    }

    /// For throughput msquic advises another profile than for many small requests.
    fn registration(&self) -> Outcome<Registration> {
        let profile = if self.is_bulk() {
            ExecutionProfile::MaxThroughput
        } else {
            ExecutionProfile::LowLatency
        };
        let config = RegistrationConfig::new().set_execution_profile(profile);
        Ok(Registration::new(&config)?)
    }

    fn configuration(
        &self,
        registration: &Registration,
        credential: CredentialConfig,
    ) -> Outcome<Configuration> {
        let streams = u16::try_from(self.parallel.max(100))?;
        let settings = Settings::new()
            .set_PeerBidiStreamCount(streams)
            .set_IdleTimeoutMs(30_000);
        let configuration = Configuration::open(registration, &alpn(), Some(&settings))?;
        let suites = AllowedCipherSuiteFlags::AES_128_GCM_SHA256;
        lend_pieces(&configuration)?;
        configuration.load_credential(&credential.set_allowed_cipher_suites(suites))?;
        Ok(configuration)
    }
}

/// Turns its buffering of what is sent off, which its settings for Rust can only turn on.
fn lend_pieces(configuration: &Configuration) -> Outcome<()> {
    let mut settings = *Settings::new().set_SendBufferingEnabled().as_ffi_ref();
    settings.set_SendBufferingEnabled(0);
    let size = u32::try_from(size_of_val(&settings))?;
    // SAFETY: the handle and the settings are alive, and of the kinds that this parameter is for.
    unsafe {
        Api::set_param(
            configuration.as_raw(),
            QUIC_PARAM_CONFIGURATION_SETTINGS,
            size,
            (&raw const settings).cast(),
        )?;
    }
    Ok(())
}

fn alpn() -> [BufferRef; 1] {
    [BufferRef::from("compare")]
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((role, rest)) if role == "server" => server::serve(&Arguments::read(rest)?),
        Some((role, rest)) if role == "client" => client::run(&Arguments::read(rest)?),
        _ => Err("server or client".into()),
    }
}
