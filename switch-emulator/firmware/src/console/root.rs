//! Commands of the root context.

use super::iteration::ConsoleIteration;
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
    pub(super) fn root_command(
        &mut self,
        words: &[&str],
        iteration: &mut ConsoleIteration,
    ) -> bool {
        match words {
            ["config"] => self.context = Context::Config,
            ["openflow"] => self.context = Context::OpenFlow,
            ["debug"] => self.context = Context::Debug,
            ["show", "version"] => {
                iteration.line(&format!("Firmware version: {FIRMWARE_VERSION}"));
            }
            ["show", "ports"] => self.show_ports(iteration),
            ["show", "status"] => self.show_status(iteration),
            ["restart"] => restart(iteration),
            ["update"] => {
                iteration.line("Send the firmware by XMODEM now; Ctrl-X ends it");
                self.mode = Mode::Upload(Upload::begin(iteration.reached()));
            }
            ["get", "crc"] => iteration.line(&format!("CRC: {FLASH_CRC}")),
            ["dump", "flash"] => iteration.line("The flash is not emulated"),
            ["b", suffix] => self.production_setup(suffix, iteration),
            ["c"] => self.show_config(iteration),
            _ => return false,
        }
        true
    }

    fn show_ports(&self, iteration: &mut ConsoleIteration) {
        iteration.rule();
        let all = PortMask::from_bits(u8::MAX);
        for port in all.iter() {
            self.show_port(port, iteration);
            iteration.rule();
        }
    }

    fn show_port(&self, port: PortNumber, iteration: &mut ConsoleIteration) {
        iteration.line(&format!("Port {port}"));
        let up = iteration.agent.links().contains(port);
        iteration.line(&format!(" Status: {}", if up { "UP" } else { "DOWN" }));
        let mut member = false;
        for vlan in self.settings.vlans.active() {
            if vlan.ports.contains(port) {
                member = true;
                iteration.line(&format!(" VLAN type: {}", vlan.kind.text()));
                iteration.line(&format!(" VLAN ID: {}", vlan.id));
            }
        }
        if !member {
            iteration.line(" VLAN type: Unassigned");
        }
        if iteration.agent.version() == 0 {
            return;
        }
        let totals = iteration.agent.totals(port);
        iteration.line(&format!(" RX Bytes: {}", totals.received_bytes));
        iteration.line(&format!(" TX Bytes: {}", totals.sent_bytes));
        if iteration.agent.handles(port) {
            let sent = iteration.out.transmitted[usize::from(port.get()) - 1];
            let received = iteration.agent.frames_received(port);
            iteration.line(&format!(" RX Packets: {received}"));
            iteration.line(&format!(" TX Packets: {sent}"));
        }
        iteration.line(&format!(" RX Dropped Packets: {}", totals.received_dropped));
        iteration.line(" TX Dropped Packets: 0");
        iteration.line(" RX CRC Errors: 0");
    }

    fn show_status(&self, iteration: &mut ConsoleIteration) {
        let uptime_s = iteration
            .reached()
            .saturating_since(self.powered_up)
            .as_nanos()
            / 1_000_000_000;
        let (hours, minutes, seconds) = (uptime_s / 3_600, uptime_s / 60 % 60, uptime_s % 60);
        let [a, b, c, d] = CPU_UID;
        iteration.rule();
        iteration.line("Device Status");
        iteration.line(&format!(" CPU UID: {a}-{b}-{c}-{d}"));
        iteration.line(&format!(" Firmware Version: {FIRMWARE_VERSION}"));
        iteration.line(&format!(" CPU Temp: {CPU_TEMPERATURE_C} C"));
        iteration.line(&format!(" Uptime: {hours:02}:{minutes:02}:{seconds:02}"));
        iteration.rule();
    }

    /// Sets up a new board in production: factory values with a MAC address whose last two bytes are `suffix`.
    fn production_setup(&mut self, suffix: &str, iteration: &mut ConsoleIteration) {
        let digits = |pair: &str| {
            u8::from_str_radix(pair, 16)
                .ok()
                .filter(|_| pair.len() == 2)
        };
        let bytes = suffix
            .split_once(':')
            .and_then(|(high, low)| Some([digits(high)?, digits(low)?]));
        let Some([high, low]) = bytes else {
            return iteration.line("MAC suffix has an incorrect format, use XX:XX");
        };
        let [a, b, c, d] = PRODUCTION_MAC;
        self.settings = Settings::factory(MacAddress([a, b, c, d, high, low]));
        if let Ok(vlan) = self.settings.vlans.find(100) {
            vlan.name = "OpenFlow".into();
        }
        self.apply_at_once(iteration);
        self.save(iteration);
    }
}

/// Ends the turn with a restart of the board.
pub(super) fn restart(iteration: &mut ConsoleIteration) {
    iteration.line("The board restarts; open the terminal again");
    iteration.restart();
}
