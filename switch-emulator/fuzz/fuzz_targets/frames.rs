//! Frames of any length and contents, at any instant, through a board whose table valid messages have filled.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{run, Steps};

fuzz_target!(|bytes: &[u8]| run(bytes, Steps::Frames));
