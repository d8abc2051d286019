//! The order of the `mod` lines in `lib.rs` is the layering of this crate.

#[test]
fn a_module_names_only_modules_above_it() {
    test_fixture::layering::check(env!("CARGO_MANIFEST_DIR"));
}
