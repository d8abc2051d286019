//! Entry points for fuzzing whole connections: on virtual time, with real keys, doing what any bytes say.
//!
//! The tests below run each over its corpus in `fuzz/corpus` and over seeded inputs; the targets in `fuzz/` call the same
//! functions.

mod datagrams;
mod scripted;
mod api;
mod versions;
mod resumption;
mod server_sessions;

pub use api::api;
pub use datagrams::datagrams;
pub use resumption::resumption;
pub use scripted::{scripted_client, scripted_server};
pub use server_sessions::server_sessions;
pub use versions::version_information;

#[cfg(test)]
mod tests {
    use crate::inputs;

    #[test]
    fn datagrams() {
        inputs::run("datagrams", 100, super::datagrams);
    }

    #[test]
    fn scripted_client() {
        inputs::run("scripted_client", 150, super::scripted_client);
    }

    #[test]
    fn scripted_server() {
        inputs::run("scripted_server", 150, super::scripted_server);
    }

    #[test]
    fn api() {
        inputs::run("api", 100, super::api);
    }
    #[test]
    fn version_information() {
        inputs::run("version_information", 100, super::version_information);
    }

    #[test]
    fn resumption() {
        inputs::run("resumption", 40, super::resumption);
    }

    #[test]
    fn server_sessions() {
        inputs::run("server_sessions", 60, super::server_sessions);
    }
}
