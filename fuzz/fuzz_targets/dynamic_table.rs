#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quic_http3::fuzzing::dynamic_table(bytes));
