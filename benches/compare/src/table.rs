//! The table.

use crate::measure::Figures;

/// The runs of one stack: client and server.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) runs: Vec<[Figures; 2]>,
}

impl Row {
    pub(crate) const fn new(title: &'static str) -> Self {
        Self {
            title,
            runs: Vec::new(),
        }
    }
}

/// Prints medians with their ranges.
pub(crate) fn print(rows: &[Row], size: u64) {
    let gigabytes = size as f64 / 1e9;
    println!(
        "{size} bytes, {} rounds in turns; median (smallest to largest)",
        rows.first().map_or(0, |r| r.runs.len())
    );
    println!(
        "{:<20} {:<26} {:<26} {:<26} {:<14} {}",
        "", "wall, s", "client CPU, s/GB", "server CPU, s/GB", "bytes a send", "memory, MiB"
    );
    for row in rows {
        let column = |of: &dyn Fn(&[Figures; 2]) -> f64| spread(row.runs.iter().map(of).collect());
        let single = |of: &dyn Fn(&[Figures; 2]) -> f64| middle(row.runs.iter().map(of).collect());
        println!(
            "{:<20} {:<26} {:<26} {:<26} {:<14.0} {:.0} + {:.0}",
            row.title,
            column(&|[client, _]| client.wall),
            column(&|[client, _]| client.cpu / gigabytes),
            column(&|[_, server]| server.cpu / gigabytes),
            single(&|[_, server]| server.bytes_per_send),
            single(&|[client, _]| client.memory),
            single(&|[_, server]| server.memory),
        );
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn spread(values: Vec<f64>) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:.3} ({least:.3} to {most:.3})", middle(values))
}
