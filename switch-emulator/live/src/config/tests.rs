use super::*;

const BOARD: &str = "[[board]]\nname = \"s1\"\ncontroller = \"127.0.0.1:6633\"\n";

fn error(text: &str) -> String {
    let line = ProgramConfig::parse(text, "lab.toml")
        .expect_err("must be refused")
        .to_string();
    assert!(!line.contains('\n'), "one line: {line}");
    assert!(line.starts_with("lab.toml"), "names the file: {line}");
    line
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let line = error(text);
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

#[test]
fn a_complete_file() {
    let text = r#"
        [process]
        cpu = 1
        scheduling = "fifo"
        scheduling_required = true
        stall_threshold_us = 70
        rest_us = 100
        powered_for_ms = 1900
        send_lead_ns = 900
        report = "/tmp/report.json"
        ready = "/tmp/ready"
        trace = "/tmp/trace.csv"
        internal_links = [["s1:3", "s2:3"]]
        [[board]]
        name = "s1"
        profile = "zodiac-fx"
        controller = "127.0.0.1:6633"
        seed = 7
        [board.ports]
        1 = "s1-eth1"
        2 = "s1-eth2"
        [board.config]
        mac = "70:b3:d5:6c:00:01"
        ofchecks = false
        [[board]]
        name = "s2"
        controller = "[::1]:6653"
        [board.ports]
        1 = "s2-eth1"
    "#;
    let config = ProgramConfig::parse(text, "lab.toml").unwrap();
    assert_eq!(config.process.cpu, Some(1));
    assert_eq!(config.process.scheduling, Scheduling::Fifo);
    assert_eq!(config.boards.len(), 2);
    assert_eq!(
        config.boards[0].ports.values().collect::<Vec<_>>(),
        ["s1-eth1", "s1-eth2"]
    );
    assert!(!config.boards[0].settings.ofchecks);
    assert!(config.boards[1].controller.is_ipv6());
    let three = PortNumber::new(3).unwrap();
    let ends = [
        PortAddress {
            board: 0,
            port: three,
        },
        PortAddress {
            board: 1,
            port: three,
        },
    ];
    assert_eq!(config.internal_links, [ends]);
}

#[test]
fn defaults_are_those_of_the_lab() {
    let config = ProgramConfig::parse(BOARD, "lab.toml").unwrap();
    assert_eq!(config.process.scheduling, Scheduling::Deadline);
    assert_eq!(config.process.stall_threshold_us, 50);
    assert_eq!(config.process.rest_us, 10);
    assert_eq!(config.process.powered_for_ms, 0);
    assert_eq!(config.boards[0].profile.name, "zodiac-fx");
}

#[test]
fn boards_that_would_have_connected_already_are_refused() {
    refused(
        "[process]\npowered_for_ms = 1901\n[[board]]\nname = \"s1\"\ncontroller = \"127.0.0.1:6633\"\n",
        &["powered_for_ms is more than 1900", "2 s after"],
    );
}

#[test]
fn typos_name_line_key_and_what_is_allowed() {
    refused(
        "[process]\nstall_treshold_us = 5\n",
        &["line 2", "stall_treshold_us", "stall_threshold_us"],
    );
    refused(
        &format!("{BOARD}controler = 1\n"),
        &["line 4", "controler", "controller"],
    );
    refused(
        &format!("{BOARD}[board.config]\nofcheck = 1\n"),
        &["ofcheck", "ofchecks"],
    );
    refused("[proces]\n", &["proces", "process"]);
    refused(
        "[process]\nscheduling = \"rr\"\n",
        &["line 2", "rr", "deadline"],
    );
    refused("[process\n", &["line 1"]);
    refused("[[board]]\nname = \"s1\"\n", &["controller"]);
}

#[test]
fn wrong_values_are_refused() {
    refused("", &["no board"]);
    refused(
        &format!("[process]\nstall_threshold_us = 0\n{BOARD}"),
        &["stall_threshold_us"],
    );
    refused(
        "[[board]]\nname = \"s1\"\ncontroller = \"here\"\n",
        &["board s1", "controller", "here", "127.0.0.1:6633"],
    );
    refused(
        &format!("{BOARD}profile = \"zodiac-hx\"\n"),
        &["unknown profile", "zodiac-hx"],
    );
    refused(
        &format!("{BOARD}profile = \"/nowhere/x.toml\"\n"),
        &["unknown profile", "/nowhere/x.toml"],
    );
    refused(
        &format!("{BOARD}[board.ports]\n5 = \"a\"\n"),
        &["`5`", "1 to 4"],
    );
    refused(
        &format!("{BOARD}[board.ports]\none = \"a\"\n"),
        &["`one`", "1 to 4"],
    );
    refused(
        &format!("{BOARD}[board.config]\nopenflow_version = 9\n"),
        &["board s1", "openflow_version"],
    );
    refused(&format!("{BOARD}{BOARD}"), &["two boards", "s1"]);
}

#[test]
fn a_port_is_wired_once() {
    refused(
        &format!("{BOARD}[board.ports]\n1 = \"a\"\n2 = \"a\"\n"),
        &["interface a", "port 1", "port 2"],
    );
    let two = format!(
        "{BOARD}[board.ports]\n3 = \"a\"\n{}",
        BOARD.replace("s1", "s2")
    );
    let with_links = |links: &str| format!("[process]\ninternal_links = {links}\n{two}");
    refused(
        &with_links("[[\"s1:3\", \"s2:3\"]]"),
        &["port 3 of board s1", "twice"],
    );
    refused(
        &with_links("[[\"s2:1\", \"s2:1\"]]"),
        &["port 1 of board s2", "twice"],
    );
    refused(&with_links("[[\"s9:1\", \"s2:1\"]]"), &["s9:1", "s1:3"]);
    refused(&with_links("[[\"s1-1\", \"s2:1\"]]"), &["s1-1"]);
}
