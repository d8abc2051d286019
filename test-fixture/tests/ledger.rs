//! `docs/requirements.toml`: each rule of the RFCs has its test, or the reason for none. `docs/attacks.toml`: each attack.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use test_fixture::ledger;

#[test]
fn every_requirement_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for file in ["docs/requirements.toml", "docs/attacks.toml"] {
        let ledger = fs::read_to_string(root.join(file)).unwrap();
        let counts = ledger::check(&ledger, root).unwrap_or_else(|faults| {
            println!("{faults}");
            BTreeMap::default()
        });
        assert!(!counts.is_empty(), "{file} has faults");
        for (rfc, count) in counts {
            println!(
                "{rfc}: {} requirements, {} tested, {} not implemented",
                count.entries, count.tested, count.gaps
            );
        }
    }
}
