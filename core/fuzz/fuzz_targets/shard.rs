#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| neardup_fuzz::shard::run(data));
