use super::*;

fn parse(text: &str) -> Result<Config, String> {
    let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn without_settings_the_board_is_as_from_the_factory() {
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(Config::default().mac.to_string(), "70:b3:d5:6c:00:01");
}

#[test]
fn settings_by_name() {
    let config = parse(
        "name = 's1'\nmac = '02:00:00:00:00:0A'\nopenflow_ports = [1, 2]\nnative_ports = [3, 4]\nfail_state = 'safe'\n\
         openflow_version = 1\nethertype_filter = true\nofchecks = false\nloop_phase_ns = 7",
    )
    .unwrap();
    assert_eq!(config.mac, MacAddress([2, 0, 0, 0, 0, 10]));
    assert_eq!(config.fail_state, FailState::Safe);
    assert_eq!(config.openflow_ports.len(), 2);
    assert_eq!(config.loop_phase_ns, Some(7));
}

#[test]
fn mistakes_are_named() {
    for (text, word) in [
        ("nmae = 's1'", "nmae"),
        ("name = ''", "name"),
        ("name = 'sixteen letters!'", "15"),
        ("mac = '02:00'", "70:b3:d5:6c:00:01"),
        ("mac = '02:00:00:00:00:+1'", "70:b3:d5:6c:00:01"),
        ("openflow_ports = [5]", "ports 1 to 4"),
        ("openflow_ports = [1, 1]", "twice"),
        ("openflow_ports = [4]", "also an OpenFlow port"),
        ("native_ports = [4, 4]", "twice"),
        ("fail_state = 'open'", "secure"),
        ("openflow_version = 3", "OpenFlow 1.0"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
}
