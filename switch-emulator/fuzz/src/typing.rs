//! Input of the serial console: commands with valid and invalid parameters, and any bytes.

use arbitrary::{Result, Unstructured};

/// Commands of every context; what stands for a parameter is replaced: `#` by a number, `$` by a word, `@` by an
/// address, `%` by a MAC address.
const COMMANDS: [&str; 62] = [
    "config",
    "openflow",
    "debug",
    "exit",
    "help",
    "show version",
    "show ports",
    "show status",
    "restart",
    "update",
    "get crc",
    "dump flash",
    "b $",
    "b 12:34",
    "c",
    "show config",
    "show vlans",
    "set name $",
    "set mac-address %",
    "set ip-address @",
    "set netmask @",
    "set netmask 255.255.0.0",
    "set gateway @",
    "set of-controller @",
    "set of-port #",
    "set failstate secure",
    "set failstate safe",
    "set failstate $",
    "set of-version #",
    "set of-version 1",
    "set of-version 0",
    "set ethertype-filter enable",
    "set ethertype-filter disable",
    "add vlan # $",
    "delete vlan #",
    "set vlan-type # openflow",
    "set vlan-type # native",
    "set vlan-tag # tagged",
    "set vlan-tag # untagged",
    "add vlan-port # #",
    "delete vlan-port #",
    "add vlan-port 100 4",
    "add vlan-port 200 1",
    "save",
    "load",
    "factory reset",
    "show tables",
    "show flows",
    "show meters",
    "show groups",
    "enable",
    "disable",
    "clear flows",
    "read #",
    "write # #",
    "mem",
    "trace",
    "config\rsave\rrestart",
    "debug\rtrace",
    "openflow\rshow flows",
    "\x1b[A",
    "",
];

const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "100",
    "200",
    "4095",
    "65536",
    "-1",
    "99999999999",
];
const ADDRESSES: [&str; 6] = [
    "10.0.1.8",
    "255.255.255.255",
    "300.1.2.3",
    "1.2.3",
    "1.2.3.4.5.6.7.8.9",
    "0.0.0.0",
];
const MAC_ADDRESSES: [&str; 4] = [
    "70:b3:d5:6c:00:02",
    "zz:zz:zz:zz:zz:zz",
    "70b3d56c0002",
    "70:b3:d5:6c:00:002",
];

/// Size of a block of the upload of `update`, without its head and its sum.
const DATA_BYTES: usize = 128;

/// Decodes one input.
pub(crate) fn read(input: &mut Unstructured) -> Result<Vec<u8>> {
    let [form, value]: [u8; 2] = input.arbitrary()?;
    Ok(match form % 8 {
        0..=4 => line(input, value)?,
        5 => {
            // Without Enter, or with keys that edit.
            let mut keys = line(input, value)?;
            keys.pop();
            keys.extend(match value % 4 {
                0 => &b"\x08\x7f"[..],
                1 => b"\x1b[A",
                2 => b"\x1b[3~",
                _ => b"",
            });
            keys
        }
        6 => block(value, input.arbitrary()?),
        _ => {
            let length = usize::from(value).min(input.len());
            input.bytes(length)?.to_vec()
        }
    })
}

fn line(input: &mut Unstructured, value: u8) -> Result<Vec<u8>> {
    let mut typed = Vec::new();
    for byte in COMMANDS[usize::from(value) % COMMANDS.len()].bytes() {
        let choose = |input: &mut Unstructured, words: &[&'static str]| -> Result<&'static str> {
            let choice: u8 = input.arbitrary()?;
            Ok(words[usize::from(choice) % words.len()])
        };
        match byte {
            b'#' => typed.extend(choose(input, &NUMBERS)?.bytes()),
            b'@' => typed.extend(choose(input, &ADDRESSES)?.bytes()),
            b'%' => typed.extend(choose(input, &MAC_ADDRESSES)?.bytes()),
            b'$' => {
                let length: u8 = input.arbitrary()?;
                let length = usize::from(length % 24).min(input.len());
                typed.extend_from_slice(input.bytes(length)?);
            }
            byte => typed.push(byte),
        }
    }
    typed.push(b'\r');
    Ok(typed)
}

/// Returns a block of an upload: its number, and what fills it. Number 0 ends the upload instead.
fn block(number: u8, fill: u8) -> Vec<u8> {
    if number == 0 {
        return vec![0x04];
    }
    let mut block = vec![0x01, number, !number];
    block.extend([fill; DATA_BYTES]);
    // All zeros are a file whose checksum is right.
    block.push((DATA_BYTES as u8).wrapping_mul(fill));
    block
}
