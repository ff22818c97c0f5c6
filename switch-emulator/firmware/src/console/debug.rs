//! Commands of the context `debug`.

use super::iteration::ConsoleIteration;
use super::{Console, Mode};

/// Memory that the flow table's pool has, by the firmware's own account.
const POOL_BYTES: usize = 53_248;
/// Registers of the integrated switch.
const REGISTERS: usize = 256;
/// First register: the chip's family. All others read 0 until they are written.
const FAMILY: u8 = 0x87;

/// The registers of the integrated switch as the console sees them. Writing one changes nothing else.
#[derive(Debug)]
pub(super) struct Registers(Box<[u8; REGISTERS]>);

impl Registers {
    pub(super) fn new() -> Self {
        let mut values = Box::new([0; REGISTERS]);
        values[0] = FAMILY;
        Self(values)
    }
}

impl Console {
    pub(super) fn debug_command(
        &mut self,
        words: &[&str],
        iteration: &mut ConsoleIteration,
    ) -> bool {
        match words {
            ["read", register] => match byte(register) {
                Some(register) => {
                    iteration.spend(self.costs.register_read_ps);
                    self.show_register(register, iteration);
                }
                None => iteration.line("Invalid register, use 0 to 255"),
            },
            ["write", register, value] => match (byte(register), byte(value)) {
                (Some(register), Some(value)) => {
                    iteration.spend(self.costs.register_write_ps);
                    self.registers.0[usize::from(register)] = value;
                    self.show_register(register, iteration);
                }
                _ => iteration.line("Invalid register or value, use 0 to 255"),
            },
            ["mem"] => show_memory(iteration),
            ["trace"] => {
                self.mode = Mode::Trace;
                iteration.line("Trace started, press any key to stop");
            }
            _ => return false,
        }
        true
    }

    fn show_register(&self, register: u8, iteration: &mut ConsoleIteration) {
        let value = self.registers.0[usize::from(register)];
        iteration.line(&format!("Register {register} = 0x{value:02X}"));
    }
}

fn show_memory(iteration: &mut ConsoleIteration) {
    let (used, smallest, largest) = iteration.agent.pool().usage();
    iteration.line(&format!("Total memory: {POOL_BYTES} bytes"));
    iteration.line(&format!("Free memory: {} bytes", POOL_BYTES - used));
    iteration.line(&format!("Smallest free block: {smallest} bytes"));
    iteration.line(&format!("Largest free block: {largest} bytes"));
}

/// Returns a number below 256, decimal or hexadecimal after `0x`.
fn byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
