//! As `openflow`, with messages of OpenFlow 1.3 to a board that has agreed on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{run, Steps};

fuzz_target!(|bytes: &[u8]| run(bytes, Steps::OpenFlow13));
