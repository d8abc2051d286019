//! `docs/requirements.toml`: each rule of the RFCs has its test, or the reason for none.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use test_fixture::ledger;

#[test]
fn every_requirement_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let ledger = fs::read_to_string(root.join("docs/requirements.toml")).unwrap();
    let counts = ledger::check(&ledger, root).unwrap_or_else(|faults| {
        println!("{faults}");
        BTreeMap::default()
    });
    assert!(!counts.is_empty(), "the ledger has faults");
    for (rfc, count) in counts {
        println!(
            "{rfc}: {} requirements, {} tested, {} not implemented",
            count.entries, count.tested, count.gaps
        );
    }
}
