#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quic_transport::fuzzing::session_store(bytes));
