//! Entry points for fuzzing whole connections: on virtual time, with real keys, doing what any bytes say.
//!
//! The tests below run each over its corpus in `fuzz/corpus` and over seeded inputs; the targets in `fuzz/` call the same
//! functions.

mod datagrams;
mod scripted;
mod api;

pub use api::api;
pub use datagrams::datagrams;
pub use scripted::{scripted_client, scripted_server};

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
}
