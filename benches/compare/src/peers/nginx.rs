//! nginx to curl over HTTP/1.1: kernel TCP, and TLS 1.3 by OpenSSL.

use std::{
    fs::{self, File},
    net::SocketAddr,
    process::{Command, Stdio},
};

use crate::{
    Outcome,
    peers::programs,
    work::{Job, Kind},
};

/// Whether both programs are installed.
pub(crate) fn is_here() -> bool {
    let answers = |program: &str| {
        let mut command = Command::new(program);
        command
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    answers("nginx") && answers("curl")
}

pub(crate) fn serve(job: &Job) -> Outcome<()> {
    File::create(job.file("body"))?.set_len(job.work.ask().down)?;
    programs::serve(|port| {
        let text = settings(job, port);
        fs::write(job.file("nginx.conf"), text)?;
        let mut command = Command::new("sh");
        // It listens once it is there to be connected to.
        command
            .args([
                "-c",
                "(until curl -sk -o /dev/null https://127.0.0.1:$2/; do sleep 0.02; done; echo ready) & \
                 exec nginx -p \"$1\" -c nginx.conf",
                "nginx",
            ])
            .arg(&job.directory)
            .arg(port.to_string());
        Ok(command)
    })
}

fn settings(job: &Job, port: u16) -> String {
    let folder = job.directory.display();
    format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr crit;
         events {{}}
         http {{
           access_log off; client_body_temp_path {folder}/nginx; proxy_temp_path {folder}/nginx;
           fastcgi_temp_path {folder}/nginx; scgi_temp_path {folder}/nginx; uwsgi_temp_path {folder}/nginx;
           keepalive_requests 100000000; sendfile on;
           server {{
             listen 127.0.0.1:{port} ssl; root {folder};
             ssl_certificate cert.pem; ssl_certificate_key key.pem; ssl_protocols TLSv1.3;
             ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; ssl_ecdh_curve X25519;
             ssl_session_cache shared:sessions:16m;
           }}
         }}"
    )
}

pub(crate) fn run(job: &Job, address: SocketAddr) -> Outcome<()> {
    let (work, port) = (job.work, address.port());
    let asks = work.connections() * work.requests();
    let mut curl = Command::new("curl");
    curl.args([
        "-sS",
        "--fail",
        "--http1.1",
        "--tlsv1.3",
        "--curves",
        "X25519",
    ])
    .args(["--tls13-ciphers", "TLS_AES_128_GCM_SHA256", "--cacert"])
    .arg(job.file("cert.pem"))
    .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
    .args(["-o", "/dev/null", "-w", "%{size_download}\\n"])
    .arg(format!("https://localhost:{port}/body?[1-{asks}]"));
    if work.connections() > 1 {
        curl.args(["-H", "Connection: close"]);
    }
    if work.kind != Kind::Resumed {
        curl.arg("--no-sessionid");
    }
    let mut received = 0;
    for line in programs::run(&mut curl)?.lines() {
        received += line.trim().parse::<u64>()?;
    }
    if received != work.ask().down * asks {
        return Err(format!("{received} bytes are not the answer").into());
    }
    Ok(())
}
