//! The client. Streams are opened where msquic says that one has ended, so that nothing waits for another thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use msquic::{
    Configuration, Connection, ConnectionEvent, ConnectionRef, ConnectionShutdownFlags,
    CredentialConfig, CredentialFlags, Registration, Status, Stream, StreamEvent, StreamOpenFlags,
    StreamRef, StreamStartFlags, ffi::HQUIC,
};

use crate::{
    Arguments, Outcome,
    sending::{self, Sending, take_back},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// How a connection has ended, or when it was ready.
enum News {
    Connected(Instant),
    Done,
    Failed(String),
}

/// What a connection is for.
struct Plan {
    down: u64,
    up: u64,
    /// Requests that are still to be made, and to be answered.
    waiting: AtomicU64,
    missing: AtomicU64,
    parallel: u64,
    news: Sender<News>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let registration = arguments.registration()?;
    let credential = CredentialConfig::new_client()
        .set_credential_flags(CredentialFlags::SET_CA_CERTIFICATE_FILE)
        .set_ca_certificate_file(arguments.file("cert.pem"));
    let configuration = arguments.configuration(&registration, credential)?;
    let (connections, requests) = match arguments.work.as_str() {
        "connections" => (arguments.amount, 1),
        "requests" => (1, arguments.amount),
        _ => (1, 1),
    };
    let mut start = Instant::now();
    for _ in 0..connections {
        let connected = connect(arguments, &registration, &configuration, requests)?;
        if connections == 1 {
            start = connected;
        }
    }
    println!("seconds {}", start.elapsed().as_secs_f64());
    Ok(())
}

/// One connection with so many requests. Returns when it was ready.
fn connect(
    arguments: &Arguments,
    registration: &Registration,
    configuration: &Configuration,
    requests: u64,
) -> Outcome<Instant> {
    let (news, told): (_, Receiver<News>) = channel();
    let (down, up) = match arguments.work.as_str() {
        "download" => (arguments.amount, 0),
        "upload" => (1, arguments.amount),
        _ => (1, 0),
    };
    let plan = Arc::new(Plan {
        down,
        up,
        waiting: AtomicU64::new(requests),
        missing: AtomicU64::new(requests),
        parallel: arguments.parallel,
        news,
    });
    let connection = Connection::open(registration, move |connection, event| {
        on_connection(&plan, &connection, &event)
    })?;
    connection.start(configuration, "localhost", arguments.port)?;
    let mut connected = Instant::now();
    loop {
        match told.recv_timeout(PATIENCE)? {
            News::Connected(at) => connected = at,
            News::Done => break,
            News::Failed(why) => return Err(why.into()),
        }
    }
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    Ok(connected)
}

fn on_connection(
    plan: &Arc<Plan>,
    connection: &ConnectionRef,
    event: &ConnectionEvent<'_>,
) -> Result<(), Status> {
    match event {
        ConnectionEvent::Connected { .. } => {
            drop(plan.news.send(News::Connected(Instant::now())));
            for _ in 0..plan.parallel {
                // SAFETY: the handle outlives its streams.
                ask(plan, unsafe { connection.as_raw() })?;
            }
        }
        ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => {
            drop(plan.news.send(News::Failed(status.to_string())));
        }
        _ => {}
    }
    Ok(())
}

/// A number that stays out of what msquic knows of threads.
#[derive(Clone, Copy)]
struct Handle(HQUIC);

/// Makes the next request, if there is one.
fn ask(plan: &Arc<Plan>, connection: HQUIC) -> Result<(), Status> {
    let one_less = |waiting: u64| waiting.checked_sub(1);
    if plan
        .waiting
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        .is_err()
    {
        return Ok(());
    }
    let handle = Handle(connection);
    let mut request = Request {
        plan: Arc::clone(plan),
        connection: handle,
        received: 0,
        sending: Sending::default(),
        is_asked: false,
    };
    // SAFETY: the connection lives, and isn't closed here.
    let borrowed = std::mem::ManuallyDrop::new(unsafe { Connection::from_raw(connection) });
    let stream = Stream::open(&borrowed, StreamOpenFlags::NONE, move |stream, event| {
        request.on_event(&stream, &event)
    })?;
    stream.start(StreamStartFlags::NONE)?;
    let bytes = [plan.down.to_be_bytes(), plan.up.to_be_bytes()].concat();
    sending::send(&stream, bytes, plan.up == 0)?;
    // SAFETY: the callback's last event owns it from here.
    let _ = unsafe { stream.into_raw() };
    Ok(())
}

/// One stream.
struct Request {
    plan: Arc<Plan>,
    connection: Handle,
    received: u64,
    sending: Sending,
    is_asked: bool,
}

impl Request {
    fn on_event(&mut self, stream: &StreamRef, event: &StreamEvent<'_>) -> Result<(), Status> {
        match event {
            StreamEvent::Receive {
                total_buffer_length,
                ..
            } => self.received += **total_buffer_length,
            StreamEvent::PeerSendShutdown => self.on_end()?,
            StreamEvent::SendComplete { client_context, .. } => {
                take_back(*client_context);
                if self.is_asked {
                    self.sending.next(stream)?;
                } else {
                    self.is_asked = true;
                    self.sending.begin(stream, self.plan.up)?;
                }
            }
            // SAFETY: the last event of a stream that is ours.
            StreamEvent::ShutdownComplete { .. } => unsafe {
                drop(Stream::from_raw(stream.as_raw()));
            },
            _ => {}
        }
        Ok(())
    }

    fn on_end(&self) -> Result<(), Status> {
        let plan = &self.plan;
        if self.received != plan.down {
            let why = format!("{} bytes are not the answer", self.received);
            drop(plan.news.send(News::Failed(why)));
            return Ok(());
        }
        if plan.missing.fetch_sub(1, Ordering::Relaxed) == 1 {
            drop(plan.news.send(News::Done));
        }
        ask(plan, self.connection.0)
    }
}
