//! Anything typed at the serial console, among frames, messages and sessions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{run, Steps};

fuzz_target!(|bytes: &[u8]| run(bytes, Steps::Console));
