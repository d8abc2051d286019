//! The table, and the chart.

use std::fmt::Write as _;

use crate::{measure::Figures, work::Work};

/// The runs of one stack: client and server.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) runs: Vec<[Figures; 2]>,
    /// System calls of both ends in one run apart, where they can be counted.
    pub(crate) calls: Option<f64>,
}

impl Row {
    pub(crate) const fn new(title: &'static str) -> Self {
        Self {
            title,
            runs: Vec::new(),
            calls: None,
        }
    }

    fn all(&self, of: impl Fn(&[Figures; 2]) -> f64) -> Vec<f64> {
        self.runs.iter().map(of).collect()
    }
}

/// Medians with their ranges, as a table in Markdown.
pub(crate) fn table(rows: &[Row], work: Work) -> String {
    let (divisor, unit) = work.unit();
    let rounds = rows.first().map_or(0, |row| row.runs.len());
    let mut out = format!(
        "{work}; median of {rounds} rounds in turns (smallest to largest)\n\n\
         | | wall, s | CPU of both, {unit} | client | server | system calls | peak memory, MiB |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let wall = spread(row.all(|[client, _]| client.wall));
        let both = spread(row.all(|[client, server]| (client.cpu + server.cpu) / divisor));
        let client = middle(row.all(|[client, _]| client.cpu / divisor));
        let server = middle(row.all(|[_, server]| server.cpu / divisor));
        let calls = row
            .calls
            .map_or_else(|| "-".to_owned(), |calls| format!("{calls:.0}"));
        let memory = [0, 1].map(|end| middle(row.all(|ends| ends[end].memory)));
        // Writing to a string doesn't fail.
        let _ = writeln!(
            out,
            "| {} | {wall} | {both} | {client:.3} | {server:.3} | {calls} | {:.0} + {:.0} |",
            row.title, memory[0], memory[1],
        );
    }
    out
}

/// The medians of the CPU time of both ends, as bars in SVG.
pub(crate) fn chart(rows: &[Row], work: Work) -> String {
    const BAR: usize = 28;
    const LEFT: usize = 220;
    const WIDTH: f64 = 420.0;
    let (divisor, unit) = work.unit();
    let values: Vec<f64> = rows
        .iter()
        .map(|row| middle(row.all(|[client, server]| (client.cpu + server.cpu) / divisor)))
        .collect();
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let height = 40 + rows.len() * BAR;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"720\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"22\" font-weight=\"bold\">{work}: CPU of both ends, {unit}</text>\n"
    );
    for (index, (row, value)) in rows.iter().zip(values).enumerate() {
        let y = 36 + index * BAR;
        let width = value / most * WIDTH;
        let colour = if index == 0 { "#c2410c" } else { "#94a3b8" };
        let (text, title) = (y + 17, row.title);
        let end = LEFT as f64 + width + 6.0;
        // Writing to a string doesn't fail.
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{text}\">{title}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.0}\" height=\"22\" fill=\"{colour}\"/>\
             <text x=\"{end:.0}\" y=\"{text}\">{value:.3}</text>"
        );
    }
    out + "</svg>\n"
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
