const FRAME_BYTES: usize = 1514;

/// Returns a full segment from 10.0.0.1:5000 to 10.0.0.2:6000, without payload of its own.
pub(crate) fn full_segment() -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&1500u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&5000u16.to_be_bytes());
    frame[36..38].copy_from_slice(&6000u16.to_be_bytes());
    frame[46] = 5 << 4;
    frame
}
