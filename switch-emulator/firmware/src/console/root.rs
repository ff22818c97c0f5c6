//! Commands of the root context.

use super::turn::Turn;
use super::upload::Upload;
use super::{Console, Context, Mode, FIRMWARE_VERSION};
use crate::config::MacAddress;
use crate::port::{PortMask, PortNumber};
use crate::settings::Settings;

/// Serial number of the CPU, which no description tells: four words of the emulator's own.
const CPU_UID: [u32; 4] = [1_212_763_215, 538_976_288, 538_976_288, 811_081_777];
/// Temperature of the CPU in degrees Celsius: the emulated one gets neither warmer nor colder.
const CPU_TEMPERATURE_C: u8 = 42;
/// Checksum of the flash, which is not emulated.
const FLASH_CRC: u32 = 0;
/// First bytes of MAC addresses assigned in production.
const PRODUCTION_MAC: [u8; 4] = [0x70, 0xb3, 0xd5, 0x6c];

impl Console {
    pub(super) fn root_command(&mut self, words: &[&str], turn: &mut Turn) -> bool {
        match words {
            ["config"] => self.context = Context::Config,
            ["openflow"] => self.context = Context::OpenFlow,
            ["debug"] => self.context = Context::Debug,
            ["show", "version"] => {
                turn.line(&format!("Firmware version: {FIRMWARE_VERSION}"));
            }
            ["show", "ports"] => self.show_ports(turn),
            ["show", "status"] => self.show_status(turn),
            ["restart"] => restart(turn),
            ["update"] => {
                turn.line("Send the firmware by XMODEM now; Ctrl-X ends it");
                self.mode = Mode::Upload(Upload::begin(turn.reached()));
            }
            ["get", "crc"] => turn.line(&format!("CRC: {FLASH_CRC}")),
            ["dump", "flash"] => turn.line("The flash is not emulated"),
            ["b", suffix] => self.production_setup(suffix, turn),
            ["c"] => self.show_config(turn),
            _ => return false,
        }
        true
    }

    fn show_ports(&self, turn: &mut Turn) {
        turn.rule();
        let all = PortMask::from_bits(u8::MAX);
        for port in all.iter() {
            self.show_port(port, turn);
            turn.rule();
        }
    }

    fn show_port(&self, port: PortNumber, turn: &mut Turn) {
        turn.line(&format!("Port {port}"));
        let up = turn.agent.links().contains(port);
        turn.line(&format!(" Status: {}", if up { "UP" } else { "DOWN" }));
        let mut member = false;
        for vlan in self.settings.vlans.active() {
            if vlan.ports.contains(port) {
                member = true;
                turn.line(&format!(" VLAN type: {}", vlan.kind.text()));
                turn.line(&format!(" VLAN ID: {}", vlan.id));
            }
        }
        if !member {
            turn.line(" VLAN type: Unassigned");
        }
        if turn.agent.version() == 0 {
            return;
        }
        let totals = turn.agent.totals(port);
        turn.line(&format!(" RX Bytes: {}", totals.received_bytes));
        turn.line(&format!(" TX Bytes: {}", totals.sent_bytes));
        if turn.agent.handles(port) {
            let sent = turn.out.transmitted[usize::from(port.get()) - 1];
            let received = turn.agent.frames_received(port);
            turn.line(&format!(" RX Packets: {received}"));
            turn.line(&format!(" TX Packets: {sent}"));
        }
        turn.line(&format!(" RX Dropped Packets: {}", totals.received_dropped));
        turn.line(" TX Dropped Packets: 0");
        turn.line(" RX CRC Errors: 0");
    }

    fn show_status(&self, turn: &mut Turn) {
        let uptime_s = turn.reached().saturating_since(self.powered_up).as_nanos() / 1_000_000_000;
        let (hours, minutes, seconds) = (uptime_s / 3_600, uptime_s / 60 % 60, uptime_s % 60);
        let [a, b, c, d] = CPU_UID;
        turn.rule();
        turn.line("Device Status");
        turn.line(&format!(" CPU UID: {a}-{b}-{c}-{d}"));
        turn.line(&format!(" Firmware Version: {FIRMWARE_VERSION}"));
        turn.line(&format!(" CPU Temp: {CPU_TEMPERATURE_C} C"));
        turn.line(&format!(" Uptime: {hours:02}:{minutes:02}:{seconds:02}"));
        turn.rule();
    }

    /// Sets up a new board in production: factory values with a MAC address whose last two bytes are `suffix`.
    fn production_setup(&mut self, suffix: &str, turn: &mut Turn) {
        let digits = |pair: &str| {
            u8::from_str_radix(pair, 16)
                .ok()
                .filter(|_| pair.len() == 2)
        };
        let bytes = suffix
            .split_once(':')
            .and_then(|(high, low)| Some([digits(high)?, digits(low)?]));
        let Some([high, low]) = bytes else {
            return turn.line("MAC suffix has an incorrect format, use XX:XX");
        };
        let [a, b, c, d] = PRODUCTION_MAC;
        self.settings = Settings::factory(MacAddress([a, b, c, d, high, low]));
        if let Ok(vlan) = self.settings.vlans.find(100) {
            vlan.name = "OpenFlow".into();
        }
        self.apply_at_once(turn);
        self.save(turn);
    }
}

/// Ends the turn with a restart of the board.
pub(super) fn restart(turn: &mut Turn) {
    turn.line("The board restarts; open the terminal again");
    turn.restart();
}
