//! The contexts root, `config` and `debug`.

use super::terminal::{Terminal, SECOND};
use zodiac_firmware::{Config, Instant, OutputKind, PortNumber};

fn configuring() -> Terminal {
    let mut terminal = Terminal::greeted();
    terminal.command("config");
    terminal
}

#[test]
fn the_factory_configuration() {
    let (lines, _) = configuring().command("show config");
    let shown: Vec<&str> = lines[2..lines.len() - 1]
        .iter()
        .map(|line| line.trim())
        .collect();
    assert_eq!(
        shown,
        [
            "Name: Zodiac_FX",
            "MAC Address: 70:B3:D5:6C:00:01",
            "IP Address: 10.0.1.99",
            "Netmask: 255.255.255.0",
            "Gateway: 10.0.1.1",
            "OpenFlow Controller: 10.0.1.8",
            "OpenFlow Port: 6633",
            "OpenFlow Status: Enabled",
            "Failstate: Secure",
            "Force OpenFlow version: Disabled",
            "EtherType Filtering: Disabled",
        ]
    );
    assert!(lines[0].starts_with("----") && lines[0] == lines[lines.len() - 1]);
    assert_eq!(Terminal::greeted().command("c").0, lines);
}

#[test]
fn each_value_is_set_and_read_back() {
    let mut terminal = configuring();
    for (name, value, label, shown) in [
        ("name", "s1", "Name", "s1"),
        ("name", "sixteen-letters!", "Name", "sixteen-letters"),
        (
            "mac-address",
            "02:00:00:00:00:aB",
            "MAC Address",
            "02:00:00:00:00:AB",
        ),
        ("ip-address", "10.0.2.7", "IP Address", "10.0.2.7"),
        ("ip-address", "1.2.3.257", "IP Address", "1.2.3.1"),
        ("netmask", "255.0.255.0", "Netmask", "255.0.255.0"),
        ("gateway", "10.0.2.1", "Gateway", "10.0.2.1"),
        (
            "of-controller",
            "10.0.2.8",
            "OpenFlow Controller",
            "10.0.2.8",
        ),
        ("of-port", "6653", "OpenFlow Port", "6653"),
    ] {
        let confirmation = terminal.line(&format!("set {name} {value}"));
        assert_eq!(confirmation, format!("{label} set to {shown}"));
        assert_eq!(terminal.value("show config", label), shown);
    }
    assert_eq!(terminal.command("").1, "sixteen-letters(config)# ");
    for (name, value) in [
        ("mac-address", "02:00:00:00:00"),
        ("mac-address", "02-00-00-00-00-01"),
        ("ip-address", "10.0.1"),
        ("ip-address", "10.0.1.2.3"),
        ("ip-address", "1000.100.100.100"),
        ("netmask", "/24"),
        ("of-port", "70000"),
    ] {
        let line = terminal.line(&format!("set {name} {value}"));
        assert!(line.contains("incorrect format"), "{name} {value}: {line}");
    }
    assert_eq!(terminal.line("set colour red"), "Unknown command");
}

#[test]
fn states_are_set_by_word() {
    let mut terminal = configuring();
    for (command, label, shown) in [
        ("set failstate safe", "Failstate", "Safe"),
        ("set failstate secure", "Failstate", "Secure"),
        ("set of-version 1", "Force OpenFlow version", "1.0"),
        ("set of-version 4", "Force OpenFlow version", "1.3"),
        ("set of-version 0", "Force OpenFlow version", "Disabled"),
        (
            "set ethertype-filter enable",
            "EtherType Filtering",
            "Enabled",
        ),
        (
            "set ethertype-filter disable",
            "EtherType Filtering",
            "Disabled",
        ),
    ] {
        terminal.line(command);
        assert_eq!(terminal.value("show config", label), shown, "{command}");
    }
    terminal.line("set of-version 4");
    assert!(terminal.line("set of-version 2").contains("Invalid"));
    let version = terminal.value("show config", "Force OpenFlow version");
    assert_eq!(version, "Disabled");
    for wrong in ["set failstate open", "set ethertype-filter on"] {
        assert!(terminal.line(wrong).contains("Invalid"), "{wrong}");
    }
}

#[test]
fn vlans_are_listed_and_changed() {
    let mut terminal = configuring();
    let vlans = |terminal: &mut Terminal| -> Vec<String> {
        let (lines, _) = terminal.command("show vlans");
        let rows = lines[2..lines.len() - 1].iter();
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let factory = [
        "100 'Openflow' OpenFlow Untagged",
        "200 'Controller' Native Untagged",
    ];
    assert_eq!(vlans(&mut terminal), factory);
    assert_eq!(
        terminal.line("add vlan 300 third"),
        "VLAN 300 'third' added"
    );
    terminal.line("set vlan-type 300 openflow");
    terminal.line("set vlan-tag 300 tagged");
    assert_eq!(vlans(&mut terminal)[2], "300 'third' OpenFlow Tagged");
    terminal.line("set vlan-tag 300 untagged");
    terminal.line("add vlan 400 fourth");
    assert!(terminal.line("add vlan 500 fifth").contains("no more"));
    assert_eq!(terminal.line("delete vlan 100"), "VLAN 100 deleted");
    assert_eq!(vlans(&mut terminal).len(), 3);
    for (command, answer) in [
        ("add vlan-port 300 5", "Invalid port"),
        ("delete vlan-port 0", "Invalid port"),
        ("add vlan-port 300 4", "already in a VLAN"),
        ("add vlan-port 300 1", "already in a VLAN"),
        ("add vlan-port 100 1", "already in a VLAN"),
        ("delete vlan 100", "Unknown VLAN"),
        ("set vlan-type 9 native", "Unknown VLAN"),
        ("set vlan-tag 9 tagged", "Unknown VLAN"),
        ("set vlan-type 300 other", "Invalid"),
        ("set vlan-tag 300 other", "Invalid"),
        ("add vlan 0 zero", "Unknown VLAN"),
        ("add vlan four four", "Unknown VLAN"),
    ] {
        let line = terminal.line(command);
        assert!(line.contains(answer), "{command}: {line}");
    }
    terminal.line("delete vlan-port 1");
    assert!(terminal.line("add vlan-port 9 1").contains("Unknown VLAN"));
    assert_eq!(
        terminal.line("add vlan-port 300 1"),
        "Port 1 added to VLAN 300"
    );
}

#[test]
fn ports_tell_links_vlans_and_counters() {
    let mut terminal = Terminal::greeted();
    let two = PortNumber::new(2).unwrap();
    terminal
        .board
        .link_state(Instant::from_nanos(terminal.now), two, false);
    let (lines, _) = terminal.command("show ports");
    let port = |number: usize| {
        let start = lines
            .iter()
            .position(|line| *line == format!("Port {number}"))
            .unwrap();
        let rest = &lines[start + 1..];
        let end = rest
            .iter()
            .position(|line| line.starts_with("---"))
            .unwrap();
        rest[..end]
            .iter()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        port(1),
        ["Status: UP", "VLAN type: OpenFlow", "VLAN ID: 100"]
    );
    assert_eq!(
        port(2),
        ["Status: DOWN", "VLAN type: OpenFlow", "VLAN ID: 100"]
    );
    assert_eq!(port(4), ["Status: UP", "VLAN type: Native", "VLAN ID: 200"]);

    terminal.connect();
    let one = PortNumber::new(1).unwrap();
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0; 60]);
    terminal.settle();
    let (lines, _) = terminal.command("show ports");
    let packets: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("Packets"))
        .collect();
    assert_eq!(packets[0], " RX Packets: 1");
    assert_eq!(packets.len(), 3 * 4 + 2);

    terminal.command("config");
    terminal.line("delete vlan-port 3");
    terminal.command("exit");
    let (lines, _) = terminal.command("show ports");
    assert!(lines.iter().any(|line| line == " VLAN type: Unassigned"));
}

#[test]
fn the_status_counts_from_the_boot() {
    let mut terminal = Terminal::greeted();
    terminal.wait(3_600);
    let uptime = terminal.value("show status", "Uptime");
    assert_eq!(uptime, "01:00:02");
    assert_eq!(terminal.value("show status", "Firmware Version"), "0.84");
    let uid = terminal.value("show status", "CPU UID");
    assert_eq!(
        uid.split('-')
            .filter_map(|word| word.parse::<u32>().ok())
            .count(),
        4
    );
    assert!(terminal.value("show status", "CPU Temp").ends_with(" C"));
}

#[test]
fn hidden_commands() {
    let mut terminal = Terminal::greeted();
    assert!(terminal.line("get crc").starts_with("CRC: "));
    assert!(terminal.line("dump flash").contains("not emulated"));
    assert!(terminal.line("b 12").contains("incorrect format"));
    let (lines, _) = terminal.command("b 12:Ef");
    assert!(lines[0].contains("197 bytes"));
    assert_eq!(terminal.value("c", "MAC Address"), "70:B3:D5:6C:12:EF");
    terminal.command("config");
    let (lines, _) = terminal.command("show vlans");
    assert!(lines[2].contains("'OpenFlow'"), "{lines:?}");
}

#[test]
fn registers_and_memory() {
    let mut terminal = Terminal::greeted();
    terminal.command("debug");
    assert_eq!(terminal.line("read 0"), "Register 0 = 0x87");
    assert_eq!(terminal.line("write 0x10 17"), "Register 16 = 0x11");
    assert_eq!(terminal.line("read 16"), "Register 16 = 0x11");
    for wrong in ["read 256", "read x", "write 1 256"] {
        assert!(terminal.line(wrong).contains("Invalid"), "{wrong}");
    }
    let (lines, _) = terminal.command("mem");
    assert_eq!(
        lines,
        [
            "Total memory: 53248 bytes",
            "Free memory: 53248 bytes",
            "Smallest free block: 16 bytes",
            "Largest free block: 96 bytes",
        ]
    );
}

#[test]
fn the_trace_runs_until_a_key() {
    let mut terminal = Terminal::greeted();
    terminal.connect();
    terminal.command("debug");
    let (lines, prompt) = terminal.command("trace");
    assert_eq!((lines.len(), prompt.as_str()), (1, ""));
    let one = PortNumber::new(1).unwrap();
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0; 60]);
    terminal.segment(&[1, 2, 0, 8, 0, 0, 0, 9]);
    let text = terminal.wait(1);
    assert!(text.contains(" frame, missed 1\r\n"), "{text:?}");
    assert!(text.contains(" controller\r\n"), "{text:?}");
    let text = terminal.keys(b"x");
    assert!(text.ends_with("stopped\r\nZodiac_FX(debug)# "), "{text:?}");
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0; 60]);
    assert_eq!(terminal.wait(1), "");
}

#[test]
fn the_filter_acts_at_once() {
    let mut terminal = Terminal::greeted();
    terminal.connect();
    terminal.command("config");
    let one = PortNumber::new(1).unwrap();
    let before = terminal.board.counters().missed;
    terminal.line("set ethertype-filter enable");
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0x55; 60]);
    terminal.wait(1);
    assert_eq!(terminal.board.counters().missed, before);
    terminal.line("set ethertype-filter disable");
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0x55; 60]);
    terminal.wait(1);
    assert_eq!(terminal.board.counters().missed, before + 1);
}

#[test]
fn the_controller_address_counts_from_the_next_connection() {
    let mut terminal = configuring();
    assert_eq!(terminal.board.controller().to_string(), "10.0.1.8:6633");
    terminal.line("set of-controller 10.0.1.9");
    terminal.line("set of-port 6653");
    terminal.kinds();
    terminal.wait(3);
    assert_eq!(terminal.board.controller().to_string(), "10.0.1.9:6653");
    assert!(terminal.kinds().contains(&OutputKind::Connect));
}

#[test]
fn settings_of_the_file_are_what_the_console_shows() {
    let ports = |numbers: &[u8]| numbers.iter().filter_map(|n| PortNumber::new(*n)).collect();
    let mut terminal = Terminal::new(Config {
        name: "s2".into(),
        openflow_ports: ports(&[1, 2]),
        native_ports: ports(&[]),
        openflow_enabled: false,
        ..Config::default()
    });
    terminal.keys(b"\r");
    let (lines, prompt) = terminal.command("show ports");
    assert_eq!(prompt, "s2# ");
    let unassigned = lines.iter().filter(|line| line.contains("Unassigned"));
    assert_eq!(unassigned.count(), 2);
    assert_eq!(terminal.value("c", "OpenFlow Status"), "Disabled");
    terminal.now += 60 * SECOND;
    terminal.wait(1);
    assert!(!terminal.kinds().contains(&OutputKind::Connect));
}
