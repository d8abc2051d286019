//! What was counted when it was last found right: a line for each workload.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{fs, io};

use crate::workload::Workload;

/// How much more than the baseline is let pass.
const SLACK: f64 = 1.02;
/// Allocations that a file can't show are none.
const NOTHING: f64 = 0.0005;

/// What one unit of a workload costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// How it compares with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Better,
    Worse,
}

impl Unit {
    pub(crate) fn against(self, base: Self) -> Verdict {
        let more = |new, old| new > f64::mul_add(old, SLACK, NOTHING);
        let (new, old) = (self, base);
        if more(new.instructions, old.instructions) || more(new.allocations, old.allocations) {
            Verdict::Worse
        } else if more(old.instructions, new.instructions) || more(old.allocations, new.allocations)
        {
            Verdict::Better
        } else {
            Verdict::Same
        }
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baseline.txt")
}

/// The baseline of each workload that has one.
pub(crate) fn read() -> io::Result<Vec<(String, Unit)>> {
    let text = fs::read_to_string(file())?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<(String, Unit)> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().filter(|name| !name.starts_with('#'))?;
            let unit = Unit {
                instructions: words.next()?.parse().ok()?,
                allocations: words.next()?.parse().ok()?,
            };
            Some((name.to_owned(), unit))
        })
        .collect()
}

/// Makes this the baseline.
pub(crate) fn write(units: &[(Workload, Unit)]) -> io::Result<()> {
    fs::write(file(), format(units))
}

fn format(units: &[(Workload, Unit)]) -> String {
    let mut text = String::from(
        "# Instructions of our own code and allocations, both ends together, for each unit; written by\n\
         # `cargo run --release -p benches --bin guard -- update`.\n",
    );
    for (workload, unit) in units {
        let Unit {
            instructions,
            allocations,
        } = unit;
        let (name, what) = (workload.name, workload.unit);
        let _ = writeln!(
            text,
            "{name:<12}{instructions:>12.1}{allocations:>12.3}   {what}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Unit, Verdict, format, parse};
    use crate::workload::WORKLOADS;

    #[test]
    fn two_percent_and_no_allocation_more_pass() {
        let unit = |instructions, allocations| Unit {
            instructions,
            allocations,
        };
        let base = unit(1000.0, 0.0);
        assert_eq!(unit(1020.0, 0.0).against(base), Verdict::Same);
        assert_eq!(unit(1021.0, 0.0).against(base), Verdict::Worse);
        assert_eq!(unit(1000.0, 0.001).against(base), Verdict::Worse);
        assert_eq!(unit(900.0, 0.0).against(base), Verdict::Better);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let unit = Unit {
            instructions: 1234.5,
            allocations: 0.25,
        };
        let units = WORKLOADS.map(|workload| (workload, unit));
        let read = parse(&format(&units));
        assert_eq!(read.len(), WORKLOADS.len());
        assert!(read.iter().all(|(_, known)| *known == unit));
    }
}
