//! What ends a program early: one line for a person, and an exit code.

use std::fmt;

/// Why the program can't go on, in one line that says what to do about it where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with its line; line breaks in it are flattened.
    #[must_use]
    pub fn new(line: impl Into<String>) -> Self {
        let line: String = line.into();
        if line.contains(['\n', '\r']) {
            return Self(line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        Self(line)
    }

    /// A failure about a file or directory.
    #[must_use]
    pub fn with_file(path: &std::path::Path, error: &dyn fmt::Display) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_failure_is_one_line() {
        assert_eq!(Failure::new("a\nb\r\n c").to_string(), "a b c");
        assert_eq!(Failure::new("a  b").to_string(), "a  b");
    }
}
