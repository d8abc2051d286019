//! The medians of the CPU time of both ends, as bars in SVG.

use std::fmt::Write as _;

use crate::{
    number::Real as _,
    table::{Row, unit},
    work::Kind,
};

const BAR: usize = 28;
const LEFT: usize = 230;
const WIDTH: f64 = 410.0;

pub(crate) fn chart(rows: &[Row], kind: Kind) -> String {
    let (factor, unit) = unit(kind);
    let digits = if factor > 1.0 { 1 } else { 3 };
    let values: Vec<f64> = rows
        .iter()
        .map(|row| {
            let [_, middle, _] = row.cpu();
            middle
        })
        .collect();
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let height = 40 + rows.len() * BAR;
    let title = rows
        .first()
        .map_or_else(String::new, |row| row.work.to_string());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"720\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"22\" font-weight=\"bold\">{title}: CPU of both ends, {unit}</text>\n"
    );
    for (index, (row, value)) in rows.iter().zip(values).enumerate() {
        let y = 36 + index * BAR;
        let width = value / most * WIDTH;
        let colour = if index == 0 { "#c2410c" } else { "#94a3b8" };
        let (text, title) = (y + 17, &row.title);
        let end = LEFT.real() + width + 6.0;
        // Writing to a string doesn't fail.
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{text}\">{title}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.0}\" height=\"22\" fill=\"{colour}\"/>\
             <text x=\"{end:.0}\" y=\"{text}\">{value:.digits$}</text>"
        );
    }
    out + "</svg>\n"
}
