use super::*;
use crate::device::{DeviceProfile, SwitchProfile};

fn refusal(line: &str, replacement: &str) -> String {
    assert!(BANANA_PI_R1.contains(line), "no text `{line}`");
    let text = BANANA_PI_R1.replacen(line, replacement, 1);
    let error = DeviceProfile::from_toml(&text).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn the_kind_chooses_the_reader() {
    let linux = DeviceProfile::from_toml(BANANA_PI_R1).unwrap();
    let DeviceProfile::Switch(SwitchProfile::Linux(profile)) = linux else {
        panic!("{linux:?}");
    };
    assert_eq!(
        (profile.name.as_str(), profile.ports.count),
        ("banana-pi-r1", 5)
    );
    let board = DeviceProfile::from_toml(zodiac_firmware::ZODIAC_FX).unwrap();
    assert!(matches!(board, DeviceProfile::Board(_)));
}

#[test]
fn mistakes_are_named_in_one_line() {
    for (line, replacement, part) in [
        (
            "kind = \"linux-switch\"",
            "kind = \"abacus\"",
            "choose \"linux-switch\"",
        ),
        ("kind = \"linux-switch\"", "kind = 1", "invalid type"),
        ("kind = \"linux-switch\"\n", "", "line"), // then it is no Zodiac FX either
        ("tag_bytes", "tag_byts", "unknown field `tag_byts`"),
        ("value = 512", "value = 0", "cpu.ring_frames: choose 1"),
        ("count = {", "count = 65 #{", "ports.count: choose 1 to 64"),
        (
            "ring_frames = {",
            "ring_frames = 0 #{",
            "cpu.ring_frames: choose 1",
        ),
        (
            "stall_gap_ns = {",
            "stall_gap_ns = 100000 #{",
            "more than twice the mean stall",
        ),
        (
            "stall_shape = {",
            "stall_shape = 0.0 #{",
            "stall_shape: choose 0.1",
        ),
        (
            "source = \"fit\"",
            "source = \"guess\"",
            "unknown variant `guess`",
        ),
        ("format = 1", "format = 2", "reads format 1"),
    ] {
        let error = refusal(line, replacement);
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn the_firmware_refuses_a_profile_of_another_kind() {
    let error = zodiac_firmware::Profile::from_toml(BANANA_PI_R1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "profile, kind: another kind of device than a Zodiac FX; put it into a simulated network"
    );
}
