//! Runs a workload under callgrind and counts the instructions of our own code, function by function.
//!
//! Own is what was compiled from our sources, wherever it was inlined, and what was compiled from the standard library
//! within functions of ours, or stands alone. So ciphers, hashes and copies of memory, which run other code on other
//! processors, don't count, nor does the rest of TLS.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io, thread};

use crate::workload::Workload;

const OUR_SOURCES: [&str; 3] = ["quic-common/src/", "quic-transport/src/", "quic-http3/src/"];
const STANDARD_SOURCES: [&str; 2] = ["/library/", "/rust/deps/"];
const OUR_CRATES: [&str; 3] = ["quic_common", "quic_transport", "quic_http3"];
const STANDARD_CRATES: [&str; 4] = ["core", "alloc", "std", "hashbrown"];

/// What a workload costs.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    /// Instructions in all, by function.
    pub(crate) functions: BTreeMap<String, i64>,
    /// Calls of the allocator in all.
    pub(crate) allocations: u64,
}

impl Cost {
    /// Instructions of all functions.
    pub(crate) fn instructions(&self) -> i64 {
        self.functions.values().sum()
    }
}

/// Whether valgrind is there.
pub(crate) fn is_available() -> bool {
    let mut command = Command::new("valgrind");
    let command = command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Counts a workload: all that it does, less what it does to prepare.
pub(crate) fn count(workload: &Workload) -> io::Result<Cost> {
    let (whole, prepared) = thread::scope(|scope| {
        let prepared = scope.spawn(|| run(workload, 0));
        (run(workload, workload.count), prepared.join())
    });
    let mut cost = whole?;
    for (function, instructions) in prepared.unwrap()?.functions {
        *cost.functions.entry(function).or_default() -= instructions;
    }
    Ok(cost)
}

fn run(workload: &Workload, count: u64) -> io::Result<Cost> {
    let name = workload.name;
    let file = format!("callgrind.{name}.{count}.{}", std::process::id());
    let file = env::temp_dir().join(file);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env::current_exe()?)
        .args(["run", name, &count.to_string()])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let Ok(allocations) = printed.trim().parse() else {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{name}: {printed}{errors}")));
    };
    let functions = read(&file)?;
    fs::remove_file(file)?;
    Ok(Cost {
        functions,
        allocations,
    })
}

/// The instructions of each function, those of the functions that it calls left out.
fn read(file: &Path) -> io::Result<BTreeMap<String, i64>> {
    let text = fs::read_to_string(file)?;
    let mut names = HashMap::<(char, &str), &str>::new();
    let mut name = |kind, text| {
        let (id, new) = text_of(text);
        let known = names.entry((kind, id)).or_insert(new);
        *known
    };
    let (mut function, mut source) = ("", "");
    let mut is_call = false;
    let mut functions = BTreeMap::<String, i64>::new();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("fn", text)) => function = name('n', text),
            Some(("cfn", text)) => _ = name('n', text),
            Some(("fl" | "fi" | "fe", text)) => source = name('f', text),
            Some(("cfl" | "cfi", text)) => _ = name('f', text),
            // The line that follows has what the called function cost.
            Some(("calls", _)) => is_call = true,
            Some(_) => {}
            None => {
                let Some(cost) = cost_of(line) else { continue };
                if !std::mem::take(&mut is_call) && is_own(function, source) {
                    *functions.entry(function.to_owned()).or_default() += cost;
                }
            }
        }
    }
    Ok(functions)
}

/// A name is given with its number at first, and then only its number: `(12) name`, `(12)`.
fn text_of(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// A line of costs: where, and how many instructions.
fn cost_of(line: &str) -> Option<i64> {
    let (place, cost) = line.split_once(' ')?;
    let place = place.trim_start_matches(['+', '-']);
    let is_place = place == "*" || place.bytes().all(|byte| byte.is_ascii_digit());
    is_place.then(|| cost.parse().ok())?
}

fn is_own(function: &str, source: &str) -> bool {
    let names = |parts: &[&str]| parts.iter().any(|part| source.contains(part));
    let function = crate_of(function);
    if names(&OUR_SOURCES) {
        return true;
    }
    let is_ours = OUR_CRATES.contains(&function);
    is_ours && (names(&STANDARD_SOURCES) || source == "???")
        || STANDARD_CRATES.contains(&function) && names(&STANDARD_SOURCES)
}

/// The first name in a path: `quic_transport` of `<&mut quic_transport::wire::Frame as core::fmt::Debug>::fmt`.
fn crate_of(function: &str) -> &str {
    let start = function.trim_start_matches(['<', '&', '*', '(', '[']);
    let start = ["mut ", "const ", "impl ", "dyn "]
        .iter()
        .fold(start, |start, word| start.trim_start_matches(word));
    let end = start.find(|next: char| !next.is_alphanumeric() && next != '_');
    end.map_or(start, |end| start.get(..end).unwrap_or(start))
}

#[cfg(test)]
mod tests {
    use super::{cost_of, crate_of, is_own};

    #[test]
    fn a_line_of_costs_is_told_from_others() {
        assert_eq!(cost_of("+3 17"), Some(17));
        assert_eq!(cost_of("* 4"), Some(4));
        assert_eq!(cost_of("815 4"), Some(4));
        assert_eq!(cost_of("version: 1"), None);
        assert_eq!(cost_of(""), None);
    }

    #[test]
    fn the_crate_of_a_function_comes_first_in_its_name() {
        assert_eq!(crate_of("quic_http3::client::next"), "quic_http3");
        assert_eq!(crate_of("<&mut core::iter::Map<I,F> as X>::next"), "core");
        assert_eq!(crate_of("malloc"), "malloc");
    }

    #[test]
    fn own_code_is_own_wherever_it_is_inlined() {
        let ours = "/home/quic/quic-transport/src/connection/input.rs";
        let standard = "/rustc/1/library/core/src/slice/mod.rs";
        assert!(is_own("test_fixture::ends::Client::receive", ours));
        assert!(is_own("quic_transport::connection::input", standard));
        assert!(!is_own("test_fixture::ends::Client::receive", standard));
        assert!(!is_own(
            "quic_transport::tls::seal",
            "/ring-0.17/src/aead.rs"
        ));
        assert!(!is_own("memcpy", "???"));
    }
}
