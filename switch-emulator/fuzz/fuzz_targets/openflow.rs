//! OpenFlow messages and bytes in any segmentation, among frames, pauses, and sessions that begin and end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zodiac_fuzz::{run, Steps};

fuzz_target!(|bytes: &[u8]| run(bytes, Steps::OpenFlow));
