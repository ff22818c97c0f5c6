use proptest::prelude::*;

use super::*;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn message(length: usize) -> Vec<u8> {
    let mut bytes = vec![(length % 251) as u8; length];
    bytes[0] = 1;
    bytes[1] = 14;
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes
}

fn lengths(cut: &Cut) -> Vec<usize> {
    cut.segments.iter().map(Vec::len).collect()
}

#[test]
fn messages_read_at_once_share_a_segment() {
    let bytes = [message(8), message(80), message(8)].concat();
    let cut = StreamCutter::new().read(NOW, &bytes, 1);
    assert_eq!(
        cut,
        Cut {
            segments: vec![bytes],
            remarks: vec![]
        }
    );
}

#[test]
fn a_segment_ends_before_the_message_that_does_not_fit() {
    let bytes = [vec![message(80); 8].concat(), message(8)].concat();
    let cut = StreamCutter::new().read(NOW, &bytes, 1);
    assert_eq!(lengths(&cut), [480, 168]);
    assert_eq!(cut.segments.concat(), bytes);
    assert!(cut.remarks.is_empty());
}

/// Of three messages that are read at once.
#[test]
fn messages_that_came_in_segments_of_their_own_stay_apart() {
    let bytes = [message(8), message(80), message(16)].concat();
    let cuts = [0, 1, 2, 3, 4].map(|segments| StreamCutter::new().read(NOW, &bytes, segments));
    let expected: [&[usize]; 5] = [&[104], &[104], &[8, 96], &[8, 80, 16], &[8, 80, 16]];
    assert_eq!(cuts.each_ref().map(lengths), expected);
    for cut in cuts {
        assert_eq!(cut.segments.concat(), bytes);
        assert!(cut.remarks.is_empty());
    }
}

/// A single write of a controller leaves in as many segments as it takes.
#[test]
fn a_long_write_is_cut_between_its_messages() {
    let bytes = vec![message(80); 20].concat();
    let cut = StreamCutter::new().read(NOW, &bytes, bytes.len().div_ceil(SEGMENT_BYTES));
    assert_eq!(lengths(&cut), [480, 480, 480, 160]);
}

#[test]
fn a_split_message_is_put_together_and_remarked_once() {
    let (whole, mut cutter) = (message(80), StreamCutter::new());
    assert_eq!(cutter.read(NOW, &whole[..3], 1), Cut::default());
    assert_eq!(cutter.read(NOW, &whole[3..50], 1), Cut::default());
    let cut = cutter.read(NOW, &whole[50..], 1);
    assert_eq!(
        cut,
        Cut {
            segments: vec![whole.clone()],
            remarks: vec![Remark::SplitMessage]
        }
    );
    assert_eq!(cutter.deadline(), None);
    cutter.read(NOW, &whole[..40], 1);
    assert!(cutter.read(NOW, &whole[40..], 1).remarks.is_empty());
}

#[test]
fn a_long_message_is_handed_over_in_pieces_of_its_own() {
    let bytes = [message(8), message(600), message(8)].concat();
    let cut = StreamCutter::new().read(NOW, &bytes, 1);
    assert_eq!(lengths(&cut), [8, 536, 64, 8]);
    assert_eq!(cut.remarks, [Remark::LongMessage(600)]);
}

#[test]
fn garbage_passes_as_it_is_and_the_next_read_begins_anew() {
    let mut cutter = StreamCutter::new();
    let cut = cutter.read(NOW, b"GET / HTTP/1.1\r\n", 1);
    assert_eq!(cut.segments, [b"GET / HTTP/1.1\r\n".to_vec()]);
    assert_eq!(cut.remarks, [Remark::Garbage]);
    assert_eq!(lengths(&cutter.read(NOW, &message(8), 1)), [8]);
}

#[test]
fn an_unfinished_message_is_given_up_after_a_while() {
    let mut cutter = StreamCutter::new();
    cutter.read(NOW, &message(200)[..80], 1);
    assert_eq!(cutter.deadline(), Some(NOW + FLUSH_TIMEOUT));
    assert_eq!(cutter.give_up(NOW), Cut::default());
    let cut = cutter.give_up(NOW + FLUSH_TIMEOUT);
    assert_eq!(
        (lengths(&cut), cut.remarks),
        (vec![80], vec![Remark::UnfinishedMessage])
    );
    assert_eq!(lengths(&cutter.read(NOW, &message(8), 1)), [8]);
}

/// Cuts `bytes` into reads at the given places.
fn reads<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .filter(|read| !read.is_empty())
        .collect()
}

proptest! {
    #[test]
    fn any_segmentation_yields_the_same_whole_messages(
        sizes in prop::collection::vec(8usize..=SEGMENT_BYTES, 1..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        came_in in 0usize..30,
    ) {
        let messages: Vec<Vec<u8>> = sizes.into_iter().map(message).collect();
        let stream = messages.concat();
        let mut cutter = StreamCutter::new();
        let segments: Vec<Vec<u8>> =
            reads(&stream, &cuts).into_iter().flat_map(|read| cutter.read(NOW, read, came_in).segments).collect();
        let mut parsed = Vec::new();
        for segment in &segments {
            prop_assert!(!segment.is_empty() && segment.len() <= SEGMENT_BYTES);
            let mut rest = segment.as_slice();
            while !rest.is_empty() {
                let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
                parsed.push(rest[..length].to_vec());
                rest = &rest[length..];
            }
        }
        prop_assert_eq!(parsed, messages);
    }

    #[test]
    fn arbitrary_bytes_pass_complete_and_in_order(
        stream in prop::collection::vec(any::<u8>(), 1..3000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut cutter = StreamCutter::new();
        let mut segments: Vec<Vec<u8>> =
            reads(&stream, &cuts).into_iter().flat_map(|read| cutter.read(NOW, read, 1).segments).collect();
        segments.extend(cutter.give_up(NOW + FLUSH_TIMEOUT).segments);
        prop_assert!(segments.iter().all(|s| !s.is_empty() && s.len() <= SEGMENT_BYTES));
        prop_assert_eq!(segments.concat(), stream);
        prop_assert_eq!(cutter.deadline(), None);
    }
}
