//! Frames: those of the flows that the messages install, and anything else.

use arbitrary::{Result, Unstructured};

use crate::testbed::udp;

/// Flows that frames and entries share.
pub(crate) const FLOWS: u16 = 40;

/// `EtherTypes` of likely frames.
const TYPES: [u16; 8] = [
    0x0800, 0x0806, 0x8100, 0x86dd, 0x88cc, 0x8847, 0x0026, 0x9100,
];
/// IP protocols of likely frames.
const PROTOCOLS: [u8; 4] = [17, 6, 1, 2];

/// Returns a frame without FCS.
pub(crate) fn read(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [form, number]: [u8; 2] = input.arbitrary()?;
    match form % 5 {
        0 => {
            let length = usize::from(input.arbitrary::<u16>()? % 1_600);
            let given = length.min(input.len());
            let mut frame = input.bytes(given)?.to_vec();
            frame.resize(length, 0);
            Ok(frame)
        }
        1 => {
            let length = 64 + usize::from(input.arbitrary::<u16>()? % 1_473);
            Ok(udp(length, u16::from(number) % FLOWS))
        }
        2 => {
            let mut frame = udp(usize::from(number) + 64, u16::from(number) % FLOWS);
            let [kind, protocol, at, value]: [u8; 4] = input.arbitrary()?;
            let kind = TYPES[usize::from(kind) % TYPES.len()];
            frame[12..14].copy_from_slice(&kind.to_be_bytes());
            frame[23] = PROTOCOLS[usize::from(protocol) % PROTOCOLS.len()];
            // One byte of the headers as the fuzzer likes it.
            frame[usize::from(at) % 60] = value;
            Ok(frame)
        }
        3 => {
            // A pause of so many quanta; 0 ends it.
            let quanta = u16::from(number) << 8;
            let mut frame = vec![0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 2];
            frame.extend([0x88, 0x08, 0x00, 0x01]);
            frame.extend(quanta.to_be_bytes());
            Ok(frame)
        }
        _ => {
            // Tagged, once or twice.
            let mut frame = udp(usize::from(number) + 64, u16::from(number) % FLOWS);
            let [tags, high, low, _]: [u8; 4] = input.arbitrary()?;
            for _ in 0..=tags % 3 {
                frame.splice(12..12, [0x81, 0x00, high, low]);
            }
            Ok(frame)
        }
    }
}
