//! A line on a terminal that shows how far a transfer is.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use crate::{
    format::{approximate, rate, size},
    limits::PROGRESS_INTERVAL,
};

/// Columns of the bar itself.
const BAR: usize = 14;

/// Draws progress to a terminal, a few times a second; does nothing elsewhere. Its line goes when it is dropped.
#[derive(Debug)]
pub struct Progress<W: Write> {
    out: Option<W>,
    total: Option<u64>,
    start: Instant,
    next: Instant,
    drawn: usize,
}

impl<W: Write> Progress<W> {
    /// Draws on `out`, which is a terminal, or doesn't draw.
    pub const fn new(out: Option<W>, start: Instant) -> Self {
        Self {
            out,
            total: None,
            start,
            next: start,
            drawn: 0,
        }
    }

    /// How many bytes there will be, once that is known.
    pub const fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    /// Shows that `done` bytes are through. Cheap to call for each piece.
    pub fn update(&mut self, done: u64, now: Instant) {
        if self.out.is_none() || now < self.next {
            return;
        }
        self.next = now + PROGRESS_INTERVAL;
        let line = line(done, self.total, now.saturating_duration_since(self.start));
        let columns = line.chars().count();
        self.draw(&line, self.drawn.saturating_sub(columns));
        self.drawn = columns;
    }

    /// Takes the line away.
    pub fn finish(&mut self) {
        if self.drawn > 0 {
            self.draw("", self.drawn);
            self.draw("", 0);
            self.drawn = 0;
        }
    }

    /// A terminal that is gone must not end a transfer: it just gets no more lines.
    fn draw(&mut self, line: &str, blanks: usize) {
        let Some(out) = self.out.as_mut() else {
            return;
        };
        if write!(out, "\r{line}{:blanks$}", "")
            .and_then(|()| out.flush())
            .is_err()
        {
            self.out = None;
        }
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// One line of fewer than 80 columns.
fn line(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let speed = rate(done, elapsed);
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{:>12}  {speed}", size(done));
    };
    let percent = u128::from(done).saturating_mul(100) / u128::from(total);
    let filled = u128::from(done).saturating_mul(14) / u128::from(total);
    let filled = usize::try_from(filled).unwrap_or(BAR).min(BAR);
    let left = if done == 0 || done >= total {
        String::new()
    } else {
        let seconds = elapsed.as_secs_f64() * approximate(total - done) / approximate(done);
        format!("  {:.0} s left", seconds.min(1e9))
    };
    format!(
        "[{:#<filled$}{:-<2$}] {percent:>3} %  {done} of {total}  {speed}{left}",
        "",
        "",
        BAR - filled,
        done = size(done),
        total = size(total),
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Progress, line};

    #[test]
    fn lines_fit_a_terminal() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line(1 << 29, Some(1 << 30), second),
            "[#######-------]  50 %  512.00 MiB of 1.00 GiB  4.29 Gbit/s  1 s left"
        );
        for (done, total) in [
            (0, Some(0)),
            (0, Some(1)),
            (5, Some(1)),
            (1, None),
            (1023 << 20, Some((1 << 40) - 1)),
            (1 << 44, Some(1 << 44)),
        ] {
            let line = line(done, total, Duration::from_secs(1));
            assert!(line.chars().count() < 80, "{line}");
        }
    }

    #[test]
    fn it_is_drawn_now_and_then_and_leaves_nothing() {
        let start = Instant::now();
        let mut out = Vec::new();
        let mut progress = Progress::new(Some(&mut out), start);
        progress.set_total(100);
        for step in 0..100 {
            progress.update(step, start + Duration::from_millis(5 * step));
        }
        // An error is reported right after this.
        drop(progress);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('[').count(), 5);
        assert!(text.ends_with('\r'));
        assert!(!text.contains('\n'));
    }

    #[test]
    fn elsewhere_nothing_is_drawn() {
        let start = Instant::now();
        let mut progress = Progress::<Vec<u8>>::new(None, start);
        progress.update(5, start + Duration::from_secs(1));
        progress.finish();
    }
}
