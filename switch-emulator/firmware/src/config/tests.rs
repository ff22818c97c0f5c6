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
         ip_address = '10.0.1.7'\ncontroller_address = '10.0.1.1'\ncontroller_port = 6653\n\
         openflow_version = 1\nethertype_filter = true\nofchecks = false\nloop_phase_ns = 7\ntimer_phase_ns = 8",
    )
    .unwrap();
    assert_eq!(config.mac, MacAddress([2, 0, 0, 0, 0, 10]));
    assert_eq!(config.fail_state, FailState::Safe);
    assert_eq!(config.openflow_ports.len(), 2);
    assert_eq!(config.loop_phase_ns, Some(7));
    assert_eq!(config.timer_phase_ns, Some(8));
    assert_eq!(config.ip_address.octets(), [10, 0, 1, 7]);
    assert_eq!(config.controller_port, 6653);
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
        ("ip_address = '10.0.1'", "IPv4"),
        ("netmask = '255.0.255.0'", "255.255.255.0"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn quirks_are_the_firmware_s_unless_asked_otherwise() {
    use crate::quirks::{Quirk, QuirkSet, Quirks};

    assert_eq!(Config::default().quirks, Quirks::Firmware);
    let flood = QuirkSet::from_iter([Quirk::FloodIsAll]);
    for (text, quirks, reassembles, floods) in [
        ("'firmware'", Quirks::Firmware, false, false),
        ("'spec'", Quirks::Spec, true, true),
        (
            "{ without = ['flood-is-all'] }",
            Quirks::Without(flood),
            false,
            true,
        ),
        (
            "{ only = ['flood-is-all'] }",
            Quirks::Only(flood),
            true,
            false,
        ),
    ] {
        let config: Config = toml::from_str(&format!("quirks = {text}")).unwrap();
        assert_eq!(config.quirks, quirks);
        assert_eq!(!quirks.has(Quirk::NoReassembly), reassembles, "{text}");
        assert_eq!(!quirks.has(Quirk::FloodIsAll), floods, "{text}");
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<Config>(&written).unwrap(), config);
    }
    assert!(toml::from_str::<Config>("quirks = 'some'").is_err());
}

#[test]
fn a_board_of_one_version_refuses_quirks_of_the_other() {
    use crate::quirks::{Quirk, QuirkSet, Quirks};

    for quirk in Quirk::ALL {
        let set = QuirkSet::from_iter([quirk]);
        for quirks in [Quirks::Without(set), Quirks::Only(set)] {
            let check = |openflow_version| {
                let config = Config {
                    openflow_version,
                    quirks,
                    ..Config::default()
                };
                config.check().is_ok()
            };
            assert!(check(0));
            assert_eq!(check(1), quirk.is_of_10());
            assert_eq!(check(4), quirk.is_of_13());
        }
    }
}

#[test]
fn the_flow_memory_lies_in_the_board_s_memory() {
    let at = |flow_memory_address| Config {
        flow_memory_address,
        ..Config::default()
    };
    assert_eq!(at(0x2000_0000).check(), Ok(()));
    for wrong in [0x2000_0002, 0x1000_0000, 0x2001_fff0] {
        let error = at(wrong).check().unwrap_err().to_string();
        assert!(
            error.starts_with("config, flow_memory_address: "),
            "{error}"
        );
    }
}
