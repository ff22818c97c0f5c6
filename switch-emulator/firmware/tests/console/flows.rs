//! The context `openflow`.

use super::terminal::Terminal;
use zodiac_firmware::{Config, FailState, OutputKind};

/// Returns a `FLOW_MOD` that adds an entry for IPv4 TCP from port 1 with these actions.
fn add_flow(priority: u16, actions: &[u8]) -> Vec<u8> {
    let mut message = vec![1, 14, 0, 0, 0, 0, 0, 7];
    message.extend(0x0038_20ce_u32.to_be_bytes()); // all but in_port, dl_type, nw_proto
    message.extend([0, 1]);
    message.extend([0; 12]);
    message.extend([0xff, 0xff, 0, 0, 8, 0, 0, 6, 0, 0]);
    message.extend([0; 12]);
    message.extend(0x1234_u64.to_be_bytes());
    message.extend([0, 0, 0, 30, 0, 60]);
    message.extend(priority.to_be_bytes());
    message.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    message.extend(actions);
    let length = (message.len() as u16).to_be_bytes();
    message[2..4].copy_from_slice(&length);
    message
}

const OUTPUT_2: [u8; 8] = [0, 0, 0, 8, 0, 2, 0, 0];
const STRIP_AND_FLOOD: [u8; 16] = [0, 3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0xff, 0xfb, 0, 0];
const SET_TOS: [u8; 8] = [0, 8, 0, 8, 9, 0, 0, 0];

fn openflow() -> Terminal {
    let mut terminal = Terminal::greeted();
    terminal.command("openflow");
    terminal
}

#[test]
fn the_status_follows_the_connection() {
    let mut terminal = openflow();
    assert_eq!(terminal.value("show status", "Status"), "Disconnected");
    terminal.connect();
    let (lines, _) = terminal.command("show status");
    let shown: Vec<&str> = lines[2..lines.len() - 1]
        .iter()
        .map(|line| line.trim())
        .collect();
    assert_eq!(
        shown,
        [
            "Status: Connected",
            "Version: 1.0 (0x01)",
            "No tables: 1",
            "Flows: 0",
            "Lookups: 0",
            "Matches: 0"
        ]
    );
}

#[test]
fn flows_are_shown_as_they_are() {
    let mut terminal = openflow();
    assert_eq!(terminal.line("show flows"), "No flows installed");
    assert_eq!(terminal.line("show tables"), "No flows installed");
    assert_eq!(terminal.line("show meters"), "No meters installed");
    assert_eq!(terminal.line("show groups"), "No groups installed");
    terminal.connect();
    for (priority, actions) in [
        (0x8000, &OUTPUT_2[..]),
        (7, &STRIP_AND_FLOOD),
        (6, &[]),
        (5, &SET_TOS),
    ] {
        terminal.segment(&add_flow(priority, actions));
    }
    terminal.settle();
    let (lines, _) = terminal.command("show flows");
    let flows: Vec<&[String]> = lines
        .split(|line| line.starts_with("---"))
        .filter(|lines| !lines.is_empty())
        .collect();
    assert_eq!(flows.len(), 4);
    let first: Vec<&str> = flows[0].iter().map(|line| line.trim()).collect();
    assert_eq!(
        first,
        [
            "Flow 1",
            "Match:",
            "Incoming Port: 1",
            "Ethernet Type: 0x0800",
            "Source MAC: 00:00:00:00:00:00",
            "Destination MAC: 00:00:00:00:00:00",
            "VLAN ID: N/A",
            "VLAN Priority: N/A",
            "IP Protocol: 6",
            "IP ToS Bits: 0x00",
            "Wildcards: 0x003820ce",
            "Cookie: 0x1234",
            "Attributes:",
            "Priority: 32768",
            "Duration: 0 secs",
            "Hard Timeout: 60 secs",
            "Idle Timeout: 30 secs",
            "Byte Count: 0",
            "Packet Count: 0",
            "Actions:",
            "Output: Port 2",
        ]
    );
    assert_eq!(
        flows[1][flows[1].len() - 2..],
        ["  Strip VLAN tag", "  Output: FLOOD"]
    );
    assert_eq!(flows[2].last().unwrap(), "  DROP");
    // Actions that the firmware does not show.
    assert_eq!(flows[3].last().unwrap(), " Actions:");
    let (lines, _) = terminal.command("show tables");
    assert_eq!(lines[1..3], ["Table: 0", " Flows: 4"]);
    assert_eq!(terminal.line("clear flows"), "4 flow(s) deleted");
    assert!(terminal.board.flows().is_empty());
}

#[test]
fn disabling_ends_the_session_and_erases_the_flows() {
    let mut terminal = Terminal::new(Config {
        fail_state: FailState::Safe,
        ofchecks: false,
        ..Config::default()
    });
    terminal.keys(b"\ropenflow\r");
    terminal.connect();
    terminal.segment(&add_flow(1, &OUTPUT_2));
    terminal.wait(1);
    assert_eq!(terminal.board.flows().len(), 1);
    terminal.kinds();
    assert_eq!(terminal.line("disable"), "OpenFlow Disabled");
    assert!(terminal.kinds().contains(&OutputKind::Close));
    assert!(terminal.board.flows().is_empty());
    assert_eq!(terminal.value("show status", "Status"), "Disabled");
    terminal.wait(60);
    assert!(!terminal.kinds().contains(&OutputKind::Connect));
    assert_eq!(terminal.line("enable"), "OpenFlow Enabled");
    assert!(terminal.kinds().contains(&OutputKind::Connect));
    assert_eq!(terminal.value("show status", "Status"), "Disconnected");
}

#[test]
fn a_connection_that_comes_up_while_disabled_is_closed() {
    let mut terminal = openflow();
    terminal.line("disable");
    terminal.kinds();
    terminal.connect();
    terminal.wait(1);
    assert_eq!(terminal.kinds(), [OutputKind::Close]);
}
