//! Editing, contexts, help.

use super::terminal::Terminal;
use zodiac_firmware::Config;

#[test]
fn the_first_key_is_greeted_and_counts_as_enter() {
    let mut terminal = Terminal::new(Config::default());
    assert_eq!(terminal.wait(1), "");
    let text = terminal.keys(b"s");
    assert!(text.ends_with("\r\n\r\nZodiac_FX# "), "{text:?}");
    assert!(text.contains("help"), "{text:?}");
    assert_eq!(terminal.keys(b"\r"), "\r\nZodiac_FX# ");
}

#[test]
fn what_is_typed_is_echoed_and_can_be_taken_back() {
    let mut terminal = Terminal::greeted();
    assert_eq!(terminal.keys(b"ab"), "ab");
    assert_eq!(terminal.keys(&[127]), "\u{8} \u{8}");
    assert_eq!(terminal.keys(&[8, 8]), "\u{8} \u{8}");
    assert_eq!(terminal.line("show version"), "Firmware version: 0.84");
}

#[test]
fn up_on_an_empty_line_recalls_the_last_command() {
    let mut terminal = Terminal::greeted();
    assert_eq!(terminal.keys(b"\x1b[A"), "");
    terminal.line("show version");
    assert_eq!(terminal.keys(b"\x1b[A"), "show version");
    assert_eq!(terminal.keys(b"\x1b[A"), "");
    assert!(terminal.keys(b"\r").starts_with("\r\nFirmware version"));
    assert_eq!(terminal.keys(b"x\x1b[A\x1b[1;5B\n\t\x80"), "x");
    assert!(terminal.keys(b"\x1b\r").starts_with("\r\nUnknown command"));
}

#[test]
fn a_line_holds_63_characters() {
    let mut terminal = Terminal::greeted();
    assert_eq!(terminal.keys(&[b'a'; 80]).len(), 63);
    assert!(terminal.keys(b"\r").contains("Unknown command"));
}

#[test]
fn contexts_are_entered_and_left() {
    let mut terminal = Terminal::greeted();
    for context in ["config", "openflow", "debug"] {
        let inside = format!("Zodiac_FX({context})# ");
        assert_eq!(terminal.command(context), (vec![], inside.clone()));
        assert_eq!(terminal.command("").1, inside);
        let (help, prompt) = terminal.command("help");
        assert!(help.len() > 30 && prompt == inside);
        assert_eq!(terminal.line("show version"), "Unknown command");
        assert_eq!(terminal.command("exit"), (vec![], "Zodiac_FX# ".into()));
    }
    for wrong in ["exit", "Config", "show", "show version now", "conf"] {
        assert_eq!(terminal.line(wrong), "Unknown command", "{wrong}");
    }
    assert_eq!(terminal.line("  show   version "), "Firmware version: 0.84");
}

#[test]
fn the_help_names_every_command() {
    let mut terminal = Terminal::greeted();
    let (help, _) = terminal.command("help");
    for heading in ["Base:", "Config:", "OpenFlow:", "Debug:"] {
        assert!(help.iter().any(|line| line == heading), "{heading}");
    }
    for hidden in ["load", "crc", "dump"] {
        assert!(!help.iter().any(|line| line.contains(hidden)), "{hidden}");
    }
}

#[test]
fn several_commands_may_be_typed_ahead() {
    let mut terminal = Terminal::greeted();
    let text = terminal.keys(b"show version\rconfig\rexit\rshow version\r");
    assert_eq!(text.matches("0.84").count(), 2, "{text:?}");
    assert!(
        text.contains("Zodiac_FX(config)# exit\r\nZodiac_FX# "),
        "{text:?}"
    );
}
