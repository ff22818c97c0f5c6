//! Saving, restarting, the EEPROM.

use super::terminal::{Terminal, SECOND};
use zodiac_firmware::{
    Board, Config, EepromError, Instant, OutputKind, PortNumber, Profile, ZODIAC_FX,
};

fn configuring() -> Terminal {
    let mut terminal = Terminal::greeted();
    terminal.command("config");
    terminal
}

fn switched_on_with(image: &[u8]) -> Result<Terminal, EepromError> {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    let board = Board::new(&profile, Config::default(), 1).unwrap();
    Ok(Terminal::of(board.with_eeprom(image)?))
}

#[test]
fn a_restart_forgets_what_was_not_saved() {
    let mut terminal = configuring();
    terminal.line("set name lost");
    terminal.kinds();
    let (lines, prompt) = terminal.command("restart");
    assert_eq!((lines.len(), prompt.as_str()), (1, ""));
    let kinds = terminal.kinds();
    let at = |kind| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(at(OutputKind::Detach) < at(OutputKind::Attach));
    assert!(kinds.contains(&OutputKind::Close));
    let text = terminal.keys(b"\r");
    assert!(
        text.ends_with("Zodiac_FX# ") && text.contains("help"),
        "{text:?}"
    );
}

#[test]
fn what_was_saved_survives_a_restart_and_a_power_cycle() {
    let mut terminal = configuring();
    let factory = *terminal.board.eeprom();
    terminal.line("set name kept");
    terminal.line("set failstate safe");
    assert_eq!(*terminal.board.eeprom(), factory);
    let (lines, _) = terminal.command("save");
    assert!(
        lines[0].contains("197 bytes") && lines[1] == "done",
        "{lines:?}"
    );
    let image = *terminal.board.eeprom();
    assert!(terminal
        .kinds()
        .contains(&OutputKind::Eeprom(Box::new(image))));
    terminal.command("restart");
    assert!(terminal.keys(b"\r").ends_with("kept# "));

    let mut terminal = switched_on_with(&image).unwrap();
    terminal.keys(b"\r");
    assert_eq!(terminal.value("c", "Failstate"), "Safe");
    assert_eq!(*terminal.board.eeprom(), image);
}

#[test]
fn load_brings_the_saved_configuration_back() {
    let mut terminal = configuring();
    terminal.line("set name changed");
    terminal.command("load");
    assert_eq!(terminal.value("show config", "Name"), "Zodiac_FX");
}

#[test]
fn a_factory_reset_keeps_the_mac_address_and_saves() {
    let mut terminal = configuring();
    terminal.line("set mac-address 02:00:00:00:00:07");
    terminal.line("set of-version 1");
    terminal.command("save");
    terminal.command("factory reset");
    assert_eq!(
        terminal.value("show config", "MAC Address"),
        "02:00:00:00:00:07"
    );
    assert_eq!(
        terminal.value("show config", "Force OpenFlow version"),
        "Disabled"
    );
    let image = *terminal.board.eeprom();
    let mut terminal = switched_on_with(&image).unwrap();
    terminal.keys(b"\r");
    assert_eq!(terminal.value("c", "MAC Address"), "02:00:00:00:00:07");
}

#[test]
fn vlans_count_after_a_restart() {
    let mut terminal = configuring();
    let three = PortNumber::new(3).unwrap();
    terminal.line("delete vlan-port 3");
    terminal.line("add vlan-port 200 3");
    terminal.command("save");
    let not_openflow = |terminal: &mut Terminal| {
        let before = terminal.board.counters().processed;
        let now = Instant::from_nanos(terminal.now);
        terminal.board.frame(now, three, &[0; 60]);
        terminal.wait(1);
        terminal.board.counters().processed == before
    };
    assert!(!not_openflow(&mut terminal));
    terminal.command("restart");
    assert!(not_openflow(&mut terminal));
}

#[test]
fn the_board_is_away_while_it_restarts_and_counters_go_on() {
    let mut terminal = configuring();
    terminal.connect();
    let one = PortNumber::new(1).unwrap();
    terminal
        .board
        .frame(Instant::from_nanos(terminal.now), one, &[0; 60]);
    terminal.wait(1);
    let before = terminal.board.counters();
    assert_eq!(before.processed, 1);
    terminal.kinds();
    terminal
        .board
        .console(Instant::from_nanos(terminal.now), b"restart\r");
    terminal
        .board
        .advance(Instant::from_nanos(terminal.now + SECOND / 2));
    terminal.board.frame(
        Instant::from_nanos(terminal.now + SECOND / 2),
        one,
        &[0; 60],
    );
    assert_eq!(terminal.board.counters().processed, 1);
    terminal.wait(60);
    assert_eq!(terminal.board.counters().received, before.received + 1);
    let kinds = terminal.kinds();
    let attached = kinds.iter().position(|kind| *kind == OutputKind::Attach);
    let connects = kinds.iter().rposition(|kind| *kind == OutputKind::Connect);
    assert!(connects > attached, "{kinds:?}");
}

#[test]
fn a_foreign_image_is_refused() {
    let refusal = |image: &[u8]| switched_on_with(image).err();
    assert_eq!(refusal(&[0xff; 197]), Some(EepromError::Blank));
    assert_eq!(refusal(&[0xff; 12]), Some(EepromError::Length(12)));
}
