//! The order of the `mod` lines in `lib.rs` is the layering of a crate: a module names only modules above it.
//!
//! Sources are read as tokens, not compiled: paths that begin with `crate::` or `super::` are resolved to modules and
//! compared with the order of declarations. Modules in `METHODS` are held to more: the files of such a module are
//! layered among themselves, and what each adds to the type that they share calls only methods of the files above it.
//! Unit tests (`#[cfg(test)]`) may name anything.

mod tokens;
mod source;
mod paths;
mod methods;

use std::fmt;
use std::path::Path;

use source::Source;

/// Modules whose files each add methods to one type, and that type.
const METHODS: [(&str, &str); 1] = [("connection", "Connection")];

/// One place that names what lies below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    file: String,
    line: usize,
    text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Checks the crate whose `Cargo.toml` is in `directory`, which is the test's `env!("CARGO_MANIFEST_DIR")`.
///
/// # Panics
///
/// With a list of all violations, or when the sources can't be read.
pub fn check(directory: &str) {
    let violations = violations(&Source::read(Path::new(directory)));
    let lines: Vec<_> = violations.iter().map(Violation::to_string).collect();
    assert!(
        lines.is_empty(),
        "the order of `mod` lines is the layering:\n{}",
        lines.join("\n")
    );
}

fn violations(source: &Source) -> Vec<Violation> {
    let mut found = paths::violations(source);
    for (module, shared) in METHODS {
        found.extend(methods::violations(source, module, shared));
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::source::Source;
    use super::violations;

    const NONE: [&str; 0] = [];
    const ROOT: &str = "mod low; mod middle; mod high; pub use high::High;";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let source = Source::made_up(files);
        let violations = violations(&source);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn naming_modules_above_is_fine() {
        let middle = "use crate::low::{A, b::C}; use super::low; use crate::middle::D; fn f() { crate::low::g() }";
        let files = [
            ("src/lib.rs", ROOT),
            ("src/low.rs", "use std::fmt; pub(crate) struct A;"),
            ("src/middle.rs", middle),
            ("src/high.rs", "use super::*; use crate::{low, middle::D};"),
        ];
        assert_eq!(found(&files[..3]), NONE);
        let expected = "src/high.rs:1: names everything in the crate root";
        assert_eq!(found(&files), [expected]);
    }

    #[test]
    fn naming_a_module_below_is_found_in_every_form() {
        let forms = [
            "use crate::high::X;",
            "use crate::{low, high::X};",
            "use super::high as h;",
            "fn f(x: &crate::high::X) {}",
            "mod inner { use super::super::high; }",
            "use crate::High;",
            "#[cfg(unix)] use crate::high;",
        ];
        for form in forms {
            let files = [("src/lib.rs", ROOT), ("src/low.rs", form)];
            let expected = "src/low.rs:1: `low` names `high`, which is below it";
            assert_eq!(found(&files), [expected], "{form}");
        }
    }

    #[test]
    fn files_of_a_directory_belong_to_its_module() {
        let files = [
            ("src/lib.rs", ROOT),
            (
                "src/low/mod.rs",
                "mod a; pub(crate) mod b { mod c; } mod e;",
            ),
            ("src/low/a.rs", "\n\nuse super::super::high;"),
            ("src/low/b/c.rs", "use crate::middle;"),
            ("src/low/e/mod.rs", "use super::a; use super::super::low;"),
        ];
        let expected = [
            "src/low/a.rs:3: `low` names `high`, which is below it",
            "src/low/b/c.rs:1: `low` names `middle`, which is below it",
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn unit_tests_may_name_anything() {
        let low = "#[cfg(test)] mod tests { use crate::high; } #[cfg(test)] mod more; \
                   #[cfg(test)] use crate::high; fn f() {}";
        let files = [
            ("src/lib.rs", ROOT),
            ("src/low.rs", low),
            ("src/low/more.rs", "use crate::high;"),
        ];
        assert_eq!(found(&files), NONE);
    }

    #[test]
    fn a_name_that_is_no_module_is_found() {
        let files = [("src/lib.rs", ROOT), ("src/low.rs", "use crate::Unknown;")];
        let expected =
            "src/low.rs:1: names `Unknown` in the crate root, which no module is known to define";
        assert_eq!(found(&files), [expected]);
    }

    const VERBS: &str = "mod input; mod output; pub struct Connection;";

    #[test]
    fn a_verb_calls_methods_of_the_files_above_it() {
        let output = "use super::{Connection, input}; impl Connection { \
                      pub fn output(&mut self) { self.input(); Self::settle(self); self.streams.later() } }";
        let files = [
            ("src/lib.rs", "mod connection;"),
            ("src/connection/mod.rs", VERBS),
            (
                "src/connection/input.rs",
                "impl super::Connection { fn input(&mut self) { self.own() } fn own(&self) {} fn settle(&self) {} }",
            ),
            ("src/connection/output.rs", output),
        ];
        assert_eq!(found(&files), NONE);
    }

    #[test]
    fn a_verb_that_calls_a_method_below_it_is_found() {
        let bodies = [
            "impl Connection { fn input(&mut self) { self.output() } }",
            "impl Connection { fn input(&mut self) { self.output::<u8>() } }",
            "impl<T> Connection<T> { fn input(&mut self) { Self::output(self) } }",
            "impl Drop for Connection { fn drop(&mut self) { self . output() } }",
            "fn input(connection: &mut Connection) { connection.output() }",
            "fn input<'a>(c: &'a mut super::Connection) { c.output() }",
        ];
        for body in bodies {
            let files = [
                ("src/lib.rs", "mod connection;"),
                ("src/connection/mod.rs", VERBS),
                ("src/connection/input.rs", body),
                (
                    "src/connection/output.rs",
                    "impl Connection { fn output(&self) {} }",
                ),
            ];
            let expected = "src/connection/input.rs:1: `input` calls `output()` of `output`, which is below it";
            assert_eq!(found(&files), [expected], "{body}");
        }
    }

    #[test]
    fn other_receivers_and_types_are_not_taken_for_the_shared_one() {
        let input = "use super::Spaces; impl Connection { fn input(&mut self) { self.path.output() } } \
                     impl Spaces { fn f(&self) { self.output() } } fn g(x: impl Fn()) { x.output() }";
        let files = [
            ("src/lib.rs", "mod connection;"),
            ("src/connection/mod.rs", VERBS),
            ("src/connection/input.rs", input),
            (
                "src/connection/output.rs",
                "impl Connection { fn output(&self) {} }",
            ),
        ];
        assert_eq!(found(&files), NONE);
    }

    #[test]
    fn a_verb_that_names_a_file_below_it_is_found() {
        let files = [
            ("src/lib.rs", "mod connection;"),
            ("src/connection/mod.rs", VERBS),
            ("src/connection/input.rs", "use super::output::Built;"),
            ("src/connection/output.rs", "use crate::connection::input;"),
        ];
        let expected = "src/connection/input.rs:1: `connection::input` names `connection::output`, which is below it";
        assert_eq!(found(&files), [expected]);
    }
}
