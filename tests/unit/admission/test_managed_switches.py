"""Switches as datasheets describe them: a memory for all queues, and what is reserved for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness.managed_switches import OWN_BUFFERS, SHARED_BUFFER, managed_switch, ring_of_managed

from loko.admission import Admitted, Refusal
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.device import BESIDE_BYTES, LARGEST_FRAME_BYTES, worst_room_bytes
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import UNKNOWN, loko_scenario
from loko.topology.lab import Lab
from loko_testbed.simulation.worst_case.port_trial import transmit_and_judge

SIZES = (306, 1400)
CONTROL = Flow("control", "h0", "h1", 5000, 5001, 2e6, 612.0, 306)
VIDEO = Flow("video", "h0", "h2", 5000, 5002, 20e6, 8 * 1400.0, 1400)


def admission_for(lab: Lab) -> PortAdmission:
    return PortAdmission(lab, loko_scenario(entries=UNKNOWN, packet_sizes_bytes=SIZES))


def request(lab: Lab) -> list[Admitted | Refusal]:
    admission = admission_for(lab)
    return [admission.request(flow) for flow in (CONTROL, VIDEO)]


def test_queues_with_frames_of_their_own_need_no_reservation(tmp_path: Path) -> None:
    answers = request(ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS)))
    assert all(isinstance(answer, Admitted) for answer in answers)


def test_a_shared_memory_comes_with_its_remedy(tmp_path: Path) -> None:
    """The control flow fits, the video does not; with as much reserved as the refusal says, both do."""
    control, video = request(ring_of_managed(tmp_path, managed_switch(SHARED_BUFFER)))
    assert isinstance(control, Admitted)
    assert isinstance(video, Refusal)
    assert video.quantity == "burst of port 1"
    needed = reservation(video)
    assert needed >= video.used + video.requested
    for reserved, fits in ((needed, True), (needed - 2, False)):
        profile = managed_switch(SHARED_BUFFER, reserved_bytes=reserved)
        answers = request(ring_of_managed(tmp_path, profile))
        assert [isinstance(answer, Admitted) for answer in answers] == [True, fits], reserved


def reservation(refusal: Refusal) -> int:
    """Return how much to reserve as a refusal says."""
    told = re.fullmatch(
        r"reserve ([\d,]+) bytes for each queue \(\[buffer\] reserved_bytes of acme-8g\)", refusal.hint
    )
    assert told is not None, refusal.hint
    return int(told[1].replace(",", ""))


def test_where_the_room_sets_the_target_a_delay_has_the_same_remedy(tmp_path: Path) -> None:
    """Reserving a single frame is too little for video: its burst takes longer than a full queue drains."""
    small = SHARED_BUFFER.replace("192_000", "100_000")
    answers = request(ring_of_managed(tmp_path, managed_switch(small, reserved_bytes=1_420)))
    late = answers[1]
    assert isinstance(late, Refusal)
    assert late.quantity.startswith("delay")
    again = request(ring_of_managed(tmp_path, managed_switch(small, reserved_bytes=reservation(late))))
    assert all(isinstance(answer, Admitted) for answer in again)


def test_a_given_target_has_no_remedy_in_the_memory(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(SHARED_BUFFER, reserved_bytes=12_000), hosts_each=2)
    scenario = loko_scenario(entries=UNKNOWN, packet_sizes_bytes=SIZES)
    first, second = (VIDEO._replace(id=source, source=source, destination="h5") for source in ("h0", "h1"))
    admission = PortAdmission(lab, scenario, target_ns=40_000)
    assert isinstance(admission.request(first), Admitted)
    refusal = admission.request(second)
    assert isinstance(refusal, Refusal)
    assert refusal.quantity.startswith("delay")
    assert refusal.hint == ""


def test_where_no_frame_has_room_the_error_says_how_to_make_it(tmp_path: Path) -> None:
    small = SHARED_BUFFER.replace("192_000", "64_000")
    lab = ring_of_managed(tmp_path, managed_switch(small))
    needed = max(SIZES) + BESIDE_BYTES
    with pytest.raises(
        InputError, match=rf"room for \d+ bytes, .*; reserve {needed:,} bytes for each queue"
    ) as told:
        admission_for(lab)
    assert "\n" not in str(told.value)
    reserved = ring_of_managed(tmp_path, managed_switch(small, reserved_bytes=needed))
    assert admission_for(reserved).room_bytes("s0") == needed


def test_a_memory_that_cannot_be_divided_so_is_no_remedy(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(SHARED_BUFFER.replace("192_000", "16_000")))
    with pytest.raises(
        InputError, match="cannot reserve 1,420 bytes for each of 16 queues \\(1,000 at most\\)"
    ):
        admission_for(lab)
    with pytest.raises(InputError, match=r"buffer\.reserved_bytes: all queues of all ports together"):
        ring_of_managed(tmp_path, managed_switch(SHARED_BUFFER, reserved_bytes=12_001))


@pytest.mark.parametrize("is_divided", [True, False])
@pytest.mark.parametrize(("factor", "reserved", "others"), [(25, 3000, 3), (100, 2000, 5), (800, 9000, 7)])
def test_the_worst_room_beside_what_is_reserved(
    tmp_path: Path, factor: int, reserved: int, others: int, is_divided: bool
) -> None:
    """Other queues fill one after another; a frame takes either kind of memory, or, divided, both at once."""
    profile = managed_switch(
        SHARED_BUFFER.replace("value = 100,", f"value = {factor},"), reserved_bytes=reserved
    )
    device = ring_of_managed(tmp_path, profile).switches["s0"].profile
    assert isinstance(device, GenericSwitch)
    assert device.buffer is not None
    all_bytes = device.queues * reserved
    shared = device.buffer.pool_bytes.value - all_bytes
    used = 0

    def fill(frame: int) -> int:
        nonlocal used
        own = beyond = 0
        while True:
            into_own = min(frame, reserved - own) if is_divided else frame * (own + frame <= reserved)
            into_shared = frame - into_own
            if into_shared > shared - used or beyond + into_shared > (shared - used) * factor // 100:
                return own + beyond
            own, beyond, used = own + into_own, beyond + into_shared, used + into_shared

    for _ in range(others):
        fill(LARGEST_FRAME_BYTES)
    bound = worst_room_bytes(device.buffer, others=others, reserved_bytes=all_bytes)
    assert reserved <= bound
    ours = fill(64)
    assert bound - 64 <= ours
    assert ours < bound + 4 * LARGEST_FRAME_BYTES  # and little more


def test_no_frame_of_a_full_reservation_is_lost(tmp_path: Path) -> None:
    """Flows from all hosts to one fill its queue, while other traffic fills the cables and the memory."""
    lab = ring_of_managed(
        tmp_path,
        managed_switch(SHARED_BUFFER.replace("192_000", "100_000"), reserved_bytes=6_000),
        hosts_each=2,
    )
    admission = admission_for(lab)
    for number in range(60):
        source, size = f"h{1 + number % 7}", SIZES[number % 2]
        admission.request(Flow(f"f{number}", source, "h0", 5000 + number, 6000, 3e6, float(size), size))
    admitted = [admission.as_bound_now(flow_id) for flow_id in admission.admitted]
    assert len(admitted) > 3
    verdict = transmit_and_judge(lab, admitted, seed=1, packets=3000)
    assert not verdict.broken
    assert not verdict.events
