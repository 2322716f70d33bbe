//! See `solver/tests/arbitrary_bytes`.
#![no_main]

#[path = "../../tests/arbitrary_bytes/mod.rs"]
mod arbitrary_bytes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    arbitrary_bytes::check_asn(bytes);
});
