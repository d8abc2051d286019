//! The checker of a requirements ledger: each rule of an RFC names the tests that show it, or the reason why none does.
//!
//! The ledger is a TOML file of a narrow form, which is all that is read here: tables `[[rfcNNNN]]`,
//! `[[draft-ietf-wg-name-NN]]`, or `[[attack]]` where the rule is our own, with one key a line, whose values are strings, or
//! arrays of strings on one line.
//!
//! ```toml
//! [[rfc9000]]
//! section = "4.1"
//! level = "must"
//! summary = "..."
//! tests = ["quic-transport::tests::peer_rules::data_at_the_limit_passes_and_one_byte_more_is_an_error"]
//! ```
//!
//! A test is named by its crate, its file and its function: `tests` after the crate is the directory of that name, all
//! else lies under `src`, and a `tests` module inside a file may be named or not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The words of RFC 2119 that an entry may have as its level.
const LEVELS: [&str; 6] = [
    "must",
    "must-not",
    "should",
    "should-not",
    "recommended",
    "required",
];

/// The table of what no RFC asks for.
const ATTACK: &str = "attack";

/// How a reason begins where a rule should be kept and isn't.
const GAP: &str = "not implemented";

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// Where its table begins, counted from 1.
    pub line: usize,
    /// The RFC or draft, as in `rfc9000`.
    pub rfc: String,
    /// The section, as in `4.1` or `A.3`.
    pub section: String,
    /// `must`, `must-not`, ...
    pub level: String,
    /// What is asked for.
    pub summary: String,
    /// The tests that show it.
    pub tests: Vec<String>,
    /// Why there is no test.
    pub reason: String,
}

/// The rules of one RFC, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub entries: usize,
    /// Those that a test shows.
    pub tested: usize,
    /// Those that should be kept and aren't.
    pub gaps: usize,
}

/// Reads a ledger.
///
/// # Errors
///
/// Each line that isn't understood, with its number.
pub fn parse(text: &str) -> Result<Vec<Requirement>, Vec<String>> {
    let mut entries: Vec<Requirement> = Vec::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rfc) = line.strip_prefix("[[").and_then(|l| l.strip_suffix("]]")) {
            entries.push(Requirement {
                line: index + 1,
                rfc: rfc.to_owned(),
                ..Requirement::default()
            });
            continue;
        }
        if read_key(line, entries.last_mut()).is_none() {
            faults.push(format!("line {}: not understood: {line}", index + 1));
        }
    }
    if faults.is_empty() {
        Ok(entries)
    } else {
        Err(faults)
    }
}

/// Reads `key = value` into an entry.
fn read_key(line: &str, entry: Option<&mut Requirement>) -> Option<()> {
    let entry = entry?;
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    let place = match key.trim() {
        "section" => &mut entry.section,
        "level" => &mut entry.level,
        "summary" => &mut entry.summary,
        "reason" => &mut entry.reason,
        "tests" if entry.tests.is_empty() => {
            let list = value.strip_prefix('[')?.strip_suffix(']')?.trim();
            let list = list.strip_suffix(',').unwrap_or(list);
            entry.tests = list.split(',').map(string).collect::<Option<_>>()?;
            return Some(());
        }
        _ => return None,
    };
    if !place.is_empty() {
        return None;
    }
    *place = string(value)?;
    Some(())
}

/// A basic string without escapes.
fn string(value: &str) -> Option<String> {
    let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = !value.is_empty() && !value.contains(['"', '\\']);
    is_plain.then(|| value.to_owned())
}

/// Checks a ledger against the sources below `root`; returns the counts for each RFC.
///
/// # Errors
///
/// All faults, one a line: entries with neither test nor reason or with a section or level that can't be, and tests
/// that don't exist.
pub fn check(text: &str, root: &Path) -> Result<BTreeMap<String, Counts>, String> {
    let entries = parse(text).map_err(|faults| faults.join("\n"))?;
    let mut counts = BTreeMap::<String, Counts>::new();
    let mut faults = String::new();
    let mut sources = Sources::new(root);
    for entry in &entries {
        for fault in faults_of(entry, &mut sources) {
            writeln!(faults, "line {}: {fault}", entry.line).unwrap();
        }
        let count = counts.entry(entry.rfc.clone()).or_default();
        count.entries += 1;
        count.tested += usize::from(!entry.tests.is_empty());
        count.gaps += usize::from(entry.reason.starts_with(GAP));
    }
    if faults.is_empty() {
        Ok(counts)
    } else {
        Err(faults)
    }
}

fn faults_of(entry: &Requirement, sources: &mut Sources<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_document(&entry.rfc) {
        faults.push(format!(
            "[[{}]] is no RFC, no draft and no attack",
            entry.rfc
        ));
    }
    if !is_section(&entry.section) {
        faults.push(format!("{:?} is no section", entry.section));
    }
    if !LEVELS.contains(&entry.level.as_str()) {
        faults.push(format!("{:?} is no level", entry.level));
    }
    if entry.summary.is_empty() {
        faults.push("no summary".to_owned());
    }
    if entry.tests.is_empty() == entry.reason.is_empty() {
        faults.push("tests or a reason for none, and not both".to_owned());
    }
    for test in &entry.tests {
        if !sources.has_test(test) {
            faults.push(format!("no test is named {test}"));
        }
    }
    faults
}

/// `rfc` and a number, `draft-` and words that end with a number, or `attack`.
fn is_document(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name == ATTACK
        || name.strip_prefix("rfc").is_some_and(is_number)
        || name.strip_prefix("draft-").is_some_and(|draft| {
            draft.bytes().all(is_word) && draft.rsplit('-').next().is_some_and(is_number)
        })
}

/// Numbers with dots between them, the first of which may be the letter of an appendix.
fn is_section(section: &str) -> bool {
    let mut parts = section.split('.');
    let is_number = |part: &str| {
        !part.is_empty() && !part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit())
    };
    let first = parts.next().unwrap_or_default();
    let is_appendix = first.len() == 1 && first.bytes().all(|b| b.is_ascii_uppercase());
    (is_number(first) || is_appendix) && parts.all(is_number)
}

/// The tests in the files that have been looked at.
struct Sources<'r> {
    root: &'r Path,
    files: BTreeMap<PathBuf, Vec<String>>,
}

impl<'r> Sources<'r> {
    const fn new(root: &'r Path) -> Self {
        Self {
            root,
            files: BTreeMap::new(),
        }
    }

    fn has_test(&mut self, path: &str) -> bool {
        let mut parts: Vec<&str> = path.split("::").collect();
        let Some(name) = parts.pop() else {
            return false;
        };
        self.find(&parts, name)
            || (parts.pop() == Some("tests") && parts.len() > 1 && self.find(&parts, name))
    }

    /// Whether the file that a path of modules names has the test.
    fn find(&mut self, modules: &[&str], name: &str) -> bool {
        let Some((package, modules)) = modules.split_first() else {
            return false;
        };
        let directory = match modules.first() {
            Some(&"tests") => self.root.join(package),
            _ => self.root.join(package).join("src"),
        };
        let path = modules.iter().fold(directory, |path, part| path.join(part));
        [path.with_extension("rs"), path.join("mod.rs")]
            .into_iter()
            .any(|file| self.tests_in(file).iter().any(|test| test == name))
    }

    fn tests_in(&mut self, file: PathBuf) -> &[String] {
        self.files.entry(file).or_insert_with_key(|file| {
            let source = fs::read_to_string(file).unwrap_or_default();
            tests_of(&source)
        })
    }
}

/// The names of the functions behind a `#[test]`.
fn tests_of(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            if std::mem::take(&mut is_test) {
                names.extend(rest.split('(').next().map(str::to_owned));
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test &= line.is_empty() || line.starts_with(|c: char| !c.is_alphabetic());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Counts, check, is_section, parse, tests_of};

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn entry(rest: &str) -> String {
        let head = "[[rfc9000]]\nsection = \"4.1\"\nlevel = \"must\"\nsummary = \"A rule.\"\n";
        format!("{head}{rest}\n")
    }

    #[test]
    fn what_is_right_is_counted() {
        let ledger = [
            entry("tests = [\"test-fixture::ledger::tests::what_is_right_is_counted\"]"),
            entry(
                "tests = [\"test-fixture::ledger::what_is_right_is_counted\", \"test-fixture::tests::ledger::every_requirement_has_its_test\"]",
            ),
            entry("reason = \"not observable\""),
            entry("reason = \"not implemented: too early\""),
        ];
        let counts = check(&ledger.concat(), root()).unwrap();
        let expected = Counts {
            entries: 4,
            tested: 2,
            gaps: 1,
        };
        assert_eq!(counts.get("rfc9000"), Some(&expected));
    }

    #[test]
    fn what_is_wrong_is_found() {
        for wrong in [
            entry(""),
            entry("tests = [\"test-fixture::ledger::tests::no_such_test\"]"),
            entry("tests = [\"test-fixture::ledger::tests::entry\"]"),
            entry("tests = [\"no-such-crate::what_is_wrong_is_found\"]"),
            entry("tests = [\"test-fixture::ledger::what_is_wrong_is_found\"]\nreason = \"both\""),
            entry("reason = \"x\"").replace("4.1", "4."),
            entry("reason = \"x\"").replace("\"must\"", "\"may\""),
            entry("reason = \"x\"").replace("rfc9000", "9000"),
            entry("reason = \"x\"").replace("A rule.", ""),
            entry("reason = \"x\"\nreason = \"y\""),
            entry("verdict = \"x\""),
            "section = \"1\"".to_owned(),
        ] {
            assert!(check(&wrong, root()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sections_are_numbers_or_of_an_appendix() {
        assert!(
            ["1", "4.1", "17.2.5.2", "A.3", "B.10"]
                .iter()
                .all(|s| is_section(s))
        );
        assert!(
            !["", "4.", ".1", "4.01", "AB.1", "a.1", "4.1a"]
                .iter()
                .any(|s| is_section(s))
        );
    }

    #[test]
    fn comments_and_empty_lines_are_skipped() {
        let entries = parse(&format!("# comment\n\n{}", entry("reason = \"x\""))).unwrap();
        assert_eq!(entries.len(), 1);
    }

    #[test]
    fn only_functions_with_the_attribute_are_tests() {
        let source =
            "#[test]\n#[ignore]\nfn one() {}\nfn two() {}\n/// Doc.\n#[test]\nfn three() {}\n";
        assert_eq!(tests_of(source), ["one", "three"]);
    }
}
