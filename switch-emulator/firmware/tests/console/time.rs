//! The console works on the same CPU as frames.

use super::terminal::Terminal;
use zodiac_firmware::{Instant, PortNumber, Profile, ZODIAC_FX};

/// Returns when a board has handled a frame that comes behind a command.
fn handled_after(command: &str) -> u64 {
    let mut terminal = Terminal::greeted();
    terminal.connect();
    let one = PortNumber::new(1).unwrap();
    let start = terminal.now;
    let line = format!("{command}\r");
    terminal
        .board
        .console(Instant::from_nanos(start), line.as_bytes());
    terminal
        .board
        .frame(Instant::from_nanos(start + 100_000), one, &[0; 60]);
    while terminal.board.counters().processed == 0 {
        let next = terminal.board.poll_at().unwrap();
        terminal.board.advance(next);
        terminal.now = next.as_nanos();
    }
    terminal.now - start
}

#[test]
fn output_delays_frames_and_a_save_for_seconds() {
    let idle = handled_after("");
    let help = handled_after("help");
    let save = handled_after("config\rsave");
    assert!(help > idle + 1_000_000, "{idle} {help}");
    assert!(save > help, "{save}");
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    assert!(save > 197 * profile.cpu.console.unwrap().eeprom_byte_ns);
}

#[test]
fn a_profile_without_console_costs_nothing() {
    let start = ZODIAC_FX.find("[cpu.console]").unwrap();
    let profile = Profile::from_toml(&ZODIAC_FX[..start]).unwrap();
    assert_eq!(profile.cpu.console, None);
    let negative = ZODIAC_FX.replace("character_ps = {", "character_ps = -1 #");
    let error = Profile::from_toml(&negative).unwrap_err().to_string();
    assert!(error.contains("cpu.console"), "{error}");
}

#[test]
fn a_board_that_hangs_is_mute() {
    let mut terminal = Terminal::greeted();
    terminal.connect();
    // Twenty flows with two actions each overrun the reply to a flow statistics request (quirk 28).
    for _ in 0..20 {
        let mut flow = vec![1, 14, 0, 88, 0, 0, 0, 7];
        flow.extend([0; 64]);
        flow.extend([0, 0, 0, 8, 0, 2, 0, 0, 0, 0, 0, 8, 0, 3, 0, 0]);
        terminal.segment(&flow);
    }
    terminal.wait(1);
    let mut request = vec![1, 16, 0, 56, 0, 0, 0, 8, 0, 1, 0, 0];
    request.extend([0; 44]);
    terminal.segment(&request);
    terminal.wait(1);
    assert_eq!(terminal.keys(b"show version\r"), "");
}
