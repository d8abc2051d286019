//! The server.

use std::sync::Arc;

use msquic::{
    Addr, BufferRef, CertificateFile, Connection, ConnectionEvent, ConnectionRef, Credential,
    CredentialConfig, Listener, ListenerEvent, Status, Stream, StreamEvent, StreamRef,
};

use crate::{
    Arguments, Outcome, alpn,
    sending::{Sending, take_back},
};

pub(crate) fn serve(arguments: &Arguments) -> Outcome<()> {
    let registration = arguments.registration()?;
    let files = CertificateFile::new(arguments.file("key.pem"), arguments.file("cert.pem"));
    let credential = CredentialConfig::new().set_credential(Credential::CertificateFile(files));
    let configuration = Arc::new(arguments.configuration(&registration, credential)?);
    let listener = Listener::open(&registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            connection.set_callback_handler(|connection, event| {
                on_connection(&connection, &event);
                Ok(())
            });
            connection.set_configuration(&configuration)?;
        }
        Ok(())
    })?;
    let address: std::net::SocketAddr = ([127, 0, 0, 1], arguments.port).into();
    listener.start(&alpn(), Some(&Addr::from(address)))?;
    println!("ready");
    loop {
        std::thread::park();
    }
}

fn on_connection(connection: &ConnectionRef, event: &ConnectionEvent<'_>) {
    match event {
        ConnectionEvent::PeerStreamStarted { stream, .. } => {
            let mut answer = Answer::default();
            stream.set_callback_handler(move |stream, event| answer.on_event(&stream, &event));
        }
        // SAFETY: the last event of a connection that is ours.
        ConnectionEvent::ShutdownComplete { .. } => unsafe {
            drop(Connection::from_raw(connection.as_raw()));
        },
        _ => {}
    }
}

/// One stream.
#[derive(Default)]
struct Answer {
    /// What it begins with.
    ask: Vec<u8>,
    counted: u64,
    sending: Sending,
}

impl Answer {
    fn on_event(&mut self, stream: &StreamRef, event: &StreamEvent<'_>) -> Result<(), Status> {
        match event {
            StreamEvent::Receive { buffers, .. } => self.read(buffers),
            StreamEvent::PeerSendShutdown => {
                let [down, up] = [0, 8].map(|at| {
                    let bytes = self.ask.get(at..).and_then(|rest| rest.first_chunk());
                    u64::from_be_bytes(bytes.copied().unwrap_or_default())
                });
                // Without an answer the client knows that something was missing.
                if self.counted == up {
                    self.sending.begin(stream, down)?;
                }
            }
            StreamEvent::SendComplete { client_context, .. } => {
                take_back(*client_context);
                self.sending.next(stream)?;
            }
            // SAFETY: the last event of a stream that is ours.
            StreamEvent::ShutdownComplete { .. } => unsafe {
                drop(Stream::from_raw(stream.as_raw()));
            },
            _ => {}
        }
        Ok(())
    }

    fn read(&mut self, buffers: &[BufferRef]) {
        for buffer in buffers {
            let bytes = buffer.as_bytes();
            let missing = (16 - self.ask.len()).min(bytes.len());
            let (ask, rest) = bytes.split_at(missing);
            self.ask.extend_from_slice(ask);
            self.counted += rest.len() as u64;
        }
    }
}
