use super::*;

fn with(line: &str, replacement: &str) -> String {
    let mut found = false;
    let text: Vec<_> = ZODIAC_FX
        .lines()
        .map(|text| {
            if text.starts_with(line) && !found {
                found = true;
                replacement
            } else {
                text
            }
        })
        .collect();
    assert!(found, "no line begins with `{line}`");
    text.join("\n")
}

fn refusal(line: &str, replacement: &str) -> String {
    let error = Profile::from_toml(&with(line, replacement))
        .unwrap_err()
        .to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn the_profile_that_comes_with_the_crate() {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    assert_eq!(profile.name, "zodiac-fx");
    assert_eq!(profile.integrated_switch.transit_ps, 2_070_000);
    assert_eq!(profile.cpu.entry.base_ps, 6_300_800);
    assert_eq!(profile.cpu.action.drop.fixed_ps, -7_200_000);
    assert!((profile.cpu.capacity_factor - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_number_may_be_plain() {
    let profile = Profile::from_toml(&with("entries = ", "entries = 64")).unwrap();
    assert_eq!(profile.table.entries, 64);
}

#[test]
fn a_profile_may_say_nothing_of_tolerances() {
    let profile = Profile::from_toml(ZODIAC_FX).unwrap();
    assert_eq!(profile.tolerance.unwrap().board_clock_ppm, 100);
    let (without, _) = ZODIAC_FX.split_once("[tolerance]").unwrap();
    assert!(Profile::from_toml(without).unwrap().tolerance.is_none());
    let typo = refusal("board_clock_ppm = ", "board_clock_pmp = 1");
    assert!(typo.contains("board_clock_pmp"), "{typo}");
}

#[test]
fn a_profile_may_say_nothing_of_jitter() {
    let profile = Profile::from_toml(&with("bridging_jitter_ps = ", "")).unwrap();
    assert_eq!(profile.integrated_switch.bridging_jitter_ps, None);
}

#[test]
fn a_number_may_be_measured() {
    let number =
        "entries = { value = 64, source = \"measured\", range = [64, 64], standard_error = 0.5, \
                  samples = 3, procedure = \"table\" }";
    let head = "title = \"Measured\"\nmeasurement = { device = \"d\", date = \"2026-11-21\", commit = \"c\", \
                samples = 100, seed = 1 }";
    let text = with("entries = ", number).replacen(
        "title = \"Northbound Networks Zodiac FX, firmware 0.84\"",
        head,
        1,
    );
    let profile = Profile::from_toml(&text).unwrap();
    assert_eq!(profile.table.entries, 64);
    assert_eq!(profile.measurement.unwrap().device, "d");
    let unknown = refusal(
        "entries = ",
        "entries = { value = 64, source = \"guessed\" }",
    );
    assert!(unknown.contains("guessed"), "{unknown}");
}

#[test]
fn mistakes_are_named_with_line_and_key() {
    let line = 1 + ZODIAC_FX
        .lines()
        .position(|text| text.starts_with("transit_ps"))
        .unwrap();
    let typo = refusal("transit_ps = ", "transit_pz = 1");
    assert!(
        typo.contains(&format!("line {line},")) && typo.contains("transit_pz"),
        "{typo}"
    );
    let kind = refusal("units = ", "units = \"many\"");
    assert!(
        kind.contains("units = \"many\"") && kind.contains("a number or a table"),
        "{kind}"
    );
    let fraction = refusal("units = ", "units = 1.5");
    assert!(fraction.contains("1.5 is not a whole number"), "{fraction}");
    let negative = refusal("units = ", "units = -1");
    assert!(negative.contains("out of range"), "{negative}");
    let source = refusal("units = ", "units = { value = 1, source = \"rumour\" }");
    assert!(
        source.contains("rumour") && source.contains("paper"),
        "{source}"
    );
    let range = refusal(
        "units = ",
        "units = { value = 1, source = \"paper\", range = [2] }",
    );
    assert!(
        range.contains("2 elements in sequence") || range.contains("array of length 2"),
        "{range}"
    );
    let key = refusal(
        "units = ",
        "units = { value = 1, source = \"paper\", rnage = [1, 3] }",
    );
    assert!(key.contains("rnage"), "{key}");
    let broken = refusal("units = ", "units = {");
    assert!(broken.contains("line"), "{broken}");
}

#[test]
fn impossible_values_are_refused() {
    for (line, replacement, key) in [
        ("format = ", "format = 9", "format"),
        ("count = ", "count = 5", "ports.count"),
        (
            "link_rate_bps = ",
            "link_rate_bps = 0",
            "ports.link_rate_bps",
        ),
        (
            "link_rate_bps = ",
            "link_rate_bps = 100000",
            "ports.link_rate_bps",
        ),
        ("preamble_bytes = ", "preamble_bytes = 1001", "preamble"),
        ("packets = ", "packets = 2", "buffer.packets"),
        ("units = ", "units = 0", "buffer.units"),
        ("units = ", "units = 1000001", "buffer.units"),
        ("unit_bytes = ", "unit_bytes = 1000001", "buffer.unit_bytes"),
        ("entries = ", "entries = 129", "table.entries"),
        (
            "capacity_factor = ",
            "capacity_factor = 0",
            "cpu.capacity_factor",
        ),
        ("loop_ps = ", "loop_ps = 0", "cpu.loop_ps"),
        ("period_ns = ", "period_ns = 0", "cpu.timers.period_ns"),
        ("cost_ps = ", "cost_ps = -1", "cpu.timers.cost_ps"),
        (
            "bridging_jitter_ps = ",
            "bridging_jitter_ps = 2070001",
            "integrated_switch.bridging_jitter_ps",
        ),
    ] {
        let error = refusal(line, replacement);
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn a_missing_number_is_named() {
    let error = Profile::from_toml(&with("transit_ps = ", ""))
        .unwrap_err()
        .to_string();
    assert!(error.contains("transit_ps"), "{error}");
}
