//! Medians with their ranges, as a table in Markdown.

use std::fmt::Write as _;

use crate::{
    measure::Figures,
    number::{Real as _, count},
    run::Pair,
    work::{Kind, Work},
};

/// From so many rounds on, stalls are looked for.
const MANY: usize = 20;

/// The runs of one stack with one work.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: String,
    pub(crate) work: Work,
    pub(crate) runs: Vec<Pair>,
    /// System calls of both ends in one run apart, where they can be counted.
    pub(crate) calls: Option<u64>,
    /// What TLS has agreed on, if there is TLS.
    pub(crate) negotiated: Option<String>,
}

impl Row {
    /// The smallest, the middle and the largest value.
    fn spread(&self, of: impl Fn(&Pair) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let value = |at: usize| values.get(at).copied().unwrap_or_default();
        [
            value(0),
            value(values.len() / 2),
            value(values.len().saturating_sub(1)),
        ]
    }

    /// The median of what one end took, for each unit.
    fn of_end(&self, end: impl Fn(&Pair) -> Figures) -> f64 {
        let [_, middle, _] = self.spread(|pair| self.each(end(pair).cpu));
        middle
    }

    /// CPU of both ends for each unit.
    pub(crate) fn cpu(&self) -> [f64; 3] {
        self.spread(|pair| self.each(pair.client.cpu + pair.server.cpu))
    }

    fn each(&self, seconds: f64) -> f64 {
        seconds / self.work.units() * unit(self.work.kind).0
    }
}

/// How seconds for each unit of the work are written: a factor, and its name.
pub(crate) const fn unit(kind: Kind) -> (f64, &'static str) {
    match kind {
        Kind::Download | Kind::Upload => (1.0, "s/GB"),
        Kind::Requests => (1e6, "us/request"),
        Kind::Connections | Kind::Resumed => (1e6, "us/connection"),
    }
}

/// Three values.
fn range([least, middle, most]: [f64; 3], digits: usize) -> String {
    format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
}

/// All rows, and what they have in common. They are of one kind of work.
pub(crate) fn table(rows: &[Row], kind: Kind) -> String {
    let (factor, unit) = unit(kind);
    let per = if kind.is_bulk() { "GB" } else { "unit" };
    let digits = if factor > 1.0 { 1 } else { 3 };
    let rounds = rows.first().map_or(0, |row| row.runs.len());
    // Nobody wants an empty column.
    let has_calls = rows.iter().any(|row| row.calls.is_some());
    let (calls, rule) = if has_calls {
        (format!(" system calls/{per} |"), " --- |")
    } else {
        (String::new(), "")
    };
    let mut out = format!(
        "Medians of {rounds} rounds in turns (smallest to largest)\n\n\
         |  | wall, s | CPU of both, {unit} | client | server |{calls} peak memory, MiB |\n\
         | --- | --- | --- | --- | --- |{rule} --- |\n"
    );
    let is_one_work = rows.windows(2).all(|two| {
        let [one, other] = two else { return true };
        one.work == other.work
    });
    for row in rows {
        let title = if is_one_work {
            row.title.clone()
        } else {
            format!("{}: {}", row.title, row.work)
        };
        let wall = range(row.spread(|pair| pair.client.wall), 3);
        let cpu = range(row.cpu(), digits);
        let (client, server) = (
            row.of_end(|pair| pair.client),
            row.of_end(|pair| pair.server),
        );
        let calls = match row.calls {
            Some(calls) => {
                let digits = usize::from(!kind.is_bulk());
                format!(" {:.digits$} |", calls.real() / row.work.units())
            }
            None if has_calls => " - |".to_owned(),
            None => String::new(),
        };
        let [_, ours, _] = row.spread(|pair| pair.client.memory);
        let [_, theirs, _] = row.spread(|pair| pair.server.memory);
        // Writing to a string doesn't fail.
        let _ = writeln!(
            out,
            "| {title} | {wall} | {cpu} | {client:.digits$} | {server:.digits$} |{calls} {ours:.0} + {theirs:.0} |",
        );
    }
    out + &negotiated(rows) + &stalls(rows)
}

/// What TLS has agreed on, with whom.
fn negotiated(rows: &[Row]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(what) = &row.negotiated else {
            continue;
        };
        match groups.iter_mut().find(|(other, _)| other == what) {
            Some((_, titles)) if titles.contains(&row.title.as_str()) => {}
            Some((_, titles)) => titles.push(&row.title),
            None => groups.push((what, vec![&row.title])),
        }
    }
    let lines = groups
        .iter()
        .map(|(what, titles)| format!("\nNegotiated {what}: {}.", titles.join("; ")));
    lines.collect::<String>() + "\n"
}

/// Whether a run took much longer than others, where there are many.
fn stalls(rows: &[Row]) -> String {
    let many = rows.iter().filter(|row| row.runs.len() >= MANY);
    let lines = many.map(|row| {
        let [_, middle, most] = row.spread(|pair| pair.client.wall);
        let runs = count(row.runs.len());
        let ratio = most / middle;
        format!(
            "{}: the slowest of {runs} runs took {ratio:.2} times the median.\n",
            row.title
        )
    });
    lines.collect()
}
