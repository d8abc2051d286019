//! Figures for people.

use std::time::Duration;

/// A whole number with its digits in groups of three.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A size in the binary unit that suits it.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = approximate(bytes);
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = "B";
    for next in UNITS {
        if value < 1023.995 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.2} {unit}")
}

/// A duration in the unit that suits it.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 0.9995 {
        format!("{seconds:.3} s")
    } else if seconds >= 0.000_999_5 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}

/// The rate of `bytes` in `elapsed`, in bits.
#[must_use]
pub fn rate(bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return "-".to_owned();
    }
    let bits = approximate(bytes) * 8.0 / seconds;
    if bits >= 1e9 {
        format!("{:.2} Gbit/s", bits / 1e9)
    } else if bits >= 1e6 {
        format!("{:.2} Mbit/s", bits / 1e6)
    } else {
        format!("{:.2} kbit/s", bits / 1e3)
    }
}

/// The quotient of two counts with one decimal, or a dash.
#[must_use]
pub fn quotient(of: u64, by: u64) -> String {
    if by == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", approximate(of) / approximate(by))
}

/// `number` as a float, near enough for display.
#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "shown with few digits"
)]
#[must_use]
pub const fn approximate(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, grouped, quotient, rate, size};

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(1_073_741_824), "1 073 741 824");
    }

    #[test]
    fn units_suit() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1 << 30), "1.00 GiB");
        assert_eq!(size((1 << 30) - 1), "1.00 GiB");
        assert_eq!(size(u64::MAX), "16384.00 PiB");
        assert_eq!(duration(Duration::from_micros(999)), "999 us");
        assert_eq!(duration(Duration::from_nanos(999_999)), "1.00 ms");
        assert_eq!(duration(Duration::from_millis(1500)), "1.500 s");
        assert_eq!(rate(1_250_000_000, Duration::from_secs(1)), "10.00 Gbit/s");
        assert_eq!(rate(125, Duration::from_secs(1)), "1.00 kbit/s");
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(rate(1, Duration::ZERO), "-");
        assert_eq!(quotient(1, 0), "-");
        assert_eq!(quotient(45, 2), "22.5");
    }
}
