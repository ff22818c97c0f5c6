use super::*;

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

fn unusual() -> Settings {
    let mut settings = Settings::factory(MacAddress([2, 0, 0, 0, 0, 9]));
    settings.name = "fifteen letters".into();
    settings.controller_port = 6653;
    settings.fail_state = FailState::Safe;
    settings.openflow_version = 4;
    settings.ethertype_filter = true;
    settings.openflow_enabled = false;
    settings.vlans.delete_port(port(2));
    settings.vlans.add(4_094, "third").unwrap();
    settings.vlans.add_port(4_094, port(2)).unwrap();
    settings
}

#[test]
fn an_image_holds_everything() {
    for settings in [Settings::of(&Config::default()), unusual()] {
        let image = settings.image();
        assert_eq!(Settings::read(&image), Ok(settings));
    }
}

#[test]
fn what_is_no_image_is_named() {
    assert_eq!(Settings::read(&[0xff; 3]), Err(EepromError::Length(3)));
    for blank in [0x00, 0xff] {
        let image = [blank; EEPROM_BYTES];
        assert_eq!(Settings::read(&image), Err(EepromError::Blank));
    }
    let image = unusual().image();
    for at in 4..EEPROM_BYTES {
        let mut damaged = image;
        damaged[at] ^= 0x10;
        assert_eq!(Settings::read(&damaged), Err(EepromError::Checksum));
    }
    let line = EepromError::Checksum.to_string();
    assert!(line.contains("delete it") && !line.contains('\n'));
}

#[test]
fn vlans_decide_at_boot_whose_a_port_is() {
    let mut settings = Settings::of(&Config::default());
    assert_eq!(settings.boot().bits(), 0b1000);
    assert_eq!(settings.openflow_ports.bits(), 0b0111);

    // Port 2 becomes native; port 3, in no VLAN any more, stays what it was.
    settings.vlans.delete_port(port(2));
    settings.vlans.delete_port(port(3));
    settings.vlans.add_port(200, port(2)).unwrap();
    assert_eq!(settings.boot().bits(), 0b1010);
    assert_eq!(settings.openflow_ports.bits(), 0b0101);

    let config = settings.apply(&Config::default(), settings.clone().boot());
    assert_eq!(config.openflow_ports, [port(1), port(3)]);
    assert_eq!(config.native_ports, [port(2), port(4)]);
}

#[test]
fn a_deleted_vlan_keeps_its_ports() {
    let mut vlans = Settings::of(&Config::default()).vlans;
    vlans.find(100).unwrap().active = false;
    assert_eq!(vlans.find(100), Err(VlanError::UnknownId));
    assert_eq!(vlans.add_port(200, port(1)), Err(VlanError::PortTaken));
    vlans.delete_port(port(1));
    assert_eq!(vlans.add_port(200, port(1)), Ok(()));
    assert_eq!(vlans.add_port(7, port(2)), Err(VlanError::PortTaken));
    vlans.add(7, "again").unwrap();
    assert_eq!(vlans.find(7).unwrap().ports.bits(), 0b0110);
}

#[test]
fn there_are_four_slots() {
    let mut vlans = Settings::of(&Config::default()).vlans;
    vlans.add(1, "a").unwrap();
    vlans.add(1, "b").unwrap();
    assert_eq!(vlans.add(2, "c"), Err(VlanError::NoSlot));
    assert_eq!(vlans.find(1).unwrap().name, "a");
}
