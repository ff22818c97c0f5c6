//! One test or more for each numbered deviation of the firmware from OpenFlow 1.0.1 (`docs/quirks.md`): what a
//! controller observes of the firmware, and what it observes with `quirks = "spec"`.

#[path = "../testbed/mod.rs"]
mod testbed;
#[path = "../testbed_network/mod.rs"]
mod testbed_network;

mod connection;
mod flow_mod;
mod flow_table;
mod forwarding;
mod handshake;
mod network;
mod one_by_one;
mod packet_out;
mod recorded;
mod statistics;

use testbed::{message, quiet_config, quiet_profile, Testbed};
use zodiac_firmware::{Config, Duration, Quirks};

const TICK: Duration = Duration::from_millis(501);

const FIRMWARE: Quirks = Quirks::Firmware;
const SPEC: Quirks = Quirks::Spec;

/// A board with a session that has asked for the features.
fn bed(quirks: Quirks) -> Testbed {
    Testbed::connected(
        &quiet_profile(),
        Config {
            quirks,
            ..quiet_config()
        },
    )
}

/// A board whose session has just been established.
fn bare(config: Config) -> Testbed {
    let mut bed = Testbed::new(&quiet_profile(), config);
    bed.board.connected(bed.now);
    bed.wait(Duration::from_millis(1));
    bed
}

fn with(quirks: Quirks) -> Config {
    Config {
        quirks,
        ..quiet_config()
    }
}

/// Returns a statistics request.
fn statistics(bed: &mut Testbed, kind: u16, body: &[u8]) -> Vec<Vec<u8>> {
    bed.exchange(&message(
        16,
        &[&kind.to_be_bytes()[..], &[0, 0], body].concat(),
    ))
}

/// Body of a request for the statistics of all flows.
fn all_flows() -> Vec<u8> {
    let mut body = vec![0; 44];
    body[..4].copy_from_slice(&0x003f_ffff_u32.to_be_bytes());
    body[40] = 0xff;
    body[42..].copy_from_slice(&[0xff, 0xff]);
    body
}

/// Returns type and code of the errors among messages.
fn errors(messages: &[Vec<u8>]) -> Vec<(u8, u8)> {
    messages
        .iter()
        .filter(|message| message[1] == 1)
        .map(|message| (message[9], message[11]))
        .collect()
}

fn types(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().map(|message| message[1]).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Each of the 96 has a test, and the table in the documentation names one that exists.
#[test]
fn every_quirk_has_a_test_and_a_line_in_the_documentation() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests: String = std::fs::read_dir(root.join("tests/quirks"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let table = std::fs::read_to_string(root.join("../../docs/quirks.md")).unwrap();
    for quirk in (1..=83).chain(190..=202) {
        let beginning = format!("fn q{quirk:02}_");
        assert!(tests.contains(&beginning), "no test of quirk {quirk}");
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {quirk} |")))
            .unwrap_or_else(|| panic!("no line for quirk {quirk}"));
        let place = row.split(" | ").nth(3).unwrap_or_default();
        assert!(
            root.join("src").join(place).is_file(),
            "quirk {quirk}: no file `{place}`"
        );
        let named = row
            .split('`')
            .find(|word| word.starts_with('q'))
            .unwrap_or("");
        assert!(
            named.starts_with(&beginning[3..]) && tests.contains(&format!("fn {named}(")),
            "quirk {quirk} names the test `{named}`"
        );
    }
}
