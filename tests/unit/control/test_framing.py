"""However a stream of bytes is cut, none of its messages is lost, cut or joined."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from loko.control.framing import HEADER, SEGMENT_BYTES, framed, segments_of, whole_messages


def message(length: int) -> bytes:
    return framed(1, 2, 7, bytes(length - HEADER.size))


messages = st.lists(st.builds(message, st.integers(8, 700)), max_size=12)


@given(messages, st.lists(st.integers(0, 3000), max_size=8))
def test_a_stream_in_any_pieces_gives_its_messages(sent: list[bytes], cuts: list[int]) -> None:
    stream, messages, pending, at = b"".join(sent), [], b"", 0
    for cut in [*sorted(cuts), len(stream)]:
        whole, pending = whole_messages(pending + stream[at:cut])
        messages += whole
        at = max(at, cut)
    assert (messages, pending) == (sent, b"")


@given(messages)
def test_segments_hold_whole_messages_in_their_order(sent: list[bytes]) -> None:
    segments = list(segments_of(sent))
    assert [message for segment in segments for message in whole_messages(segment)[0]] == sent
    for segment, following in itertools.pairwise(segments):
        first = whole_messages(following)[0][0]
        assert len(segment) + len(first) > SEGMENT_BYTES, "another would have fitted"
        assert len(segment) <= SEGMENT_BYTES or len(whole_messages(segment)[0]) == 1


def test_a_length_below_a_headers_ends_no_reading() -> None:
    nonsense = HEADER.pack(1, 2, 0, 7)
    assert whole_messages(nonsense + message(9)) == ([nonsense, message(9)], b"")
