"""The bench's findings on slices: none for exact ones, and every wrong property is found and named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from measured_slices import measured_rows
from typer.testing import CliRunner

from loko.document import LABS
from loko.slicing.document import TrtcmPort, TrtcmQueue, load_slices
from loko_testbed.cli.main import app
from loko_testbed.measure.slices import measurements, policed_port
from loko_testbed.measure.slices.devices import open_device
from loko_testbed.measure.slices.document import FOLDER, CountedBytes, VirtualSwitch, load_sliced_switch
from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict, rows
from loko_testbed.measure.slices.policed_port import Policer
from loko_testbed.measure.slices.release import PacketTimes, Release

HTB: dict[str, Any] = {
    "scheduler": "htb",
    "link_rate_bps": 1_000_000_000,
    "latency_us": 20,
    "dequeue": {"group_frames": 4, "timer_us": 0},
    "queues": [
        {
            "name": "own",
            "rate_bps": 100_000_000,
            "burst_bytes": 40_000,
            "flow": {"rate_bps": 50_000_000, "burst_bytes": 15_180, "frame_bytes": 1518},
        },
        {"name": "other", "rate_bps": 200_000_000, "burst_bytes": 20_000},
    ],
}
BORROWING: dict[str, Any] = {
    **HTB,
    "dequeue": {"group_frames": 1, "timer_us": 0},
    "queues": [
        {**HTB["queues"][0], "ceil_bps": 300_000_000, "priority": 1},
        {**HTB["queues"][1], "ceil_bps": 1_000_000_000, "priority": 0},
    ],
}
TRTCM: dict[str, Any] = {
    "scheduler": "trtcm",
    "link_rate_bps": 1_000_000_000,
    "latency_us": 20,
    "dequeue": {"group_frames": 8, "poll_us": 24},
    "queues": [
        {
            "name": "own",
            "cir_bps": 50_000_000,
            "cbs_bytes": 60_000,
            "flow": {"rate_bps": 25_000_000, "burst_bytes": 15_180, "frame_bytes": 1518},
        }
    ],
}
FAST: dict[str, Any] = {**TRTCM, "link_rate_bps": 10_000_000_000}
"""At one gigabit per second, packets arrive too slowly to form groups of 8."""
METER: dict[str, Any] = {
    "kind": "meter",
    "rate_bps": 50_000_000,
    "burst_bytes": 60_000,
    "counts": "ip-packet",
}


def changed(port: dict[str, Any], *, other: bool = False, **queue: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(port))
    copy["dequeue"] |= queue.pop("dequeue", {})
    copy["queues"][1 if other else 0] |= queue
    return copy


def judged(folder: Path, configured: dict[str, Any], switch: dict[str, Any] | None) -> list[SliceRow]:
    """Return the verdicts on a port; `switch` is what the switch does instead, or a meter, or None."""
    (folder / "configured.yml").write_text(yaml.safe_dump(configured))
    card = "10g" if configured["link_rate_bps"] == FAST["link_rate_bps"] else "1g"
    how: dict[str, Any] = {"kind": "virtual", "profile": f"open-vswitch-{card}"}
    if switch is not None and "kind" in switch:
        how = switch
    elif switch is not None:
        (folder / "does.yml").write_text(yaml.safe_dump(switch))
        how["does"] = str(folder / "does.yml")
    document = {"title": "a test", "configured": str(folder / "configured.yml"), "switch": how}
    (folder / "device.yml").write_text(yaml.safe_dump(document))
    return measured_rows(str(folder / "device.yml"), folder / "out", seed=1)


def different(rows: list[SliceRow]) -> set[str]:
    return {f"{row.slice}: {row.what}" for row in rows if row.verdict is SliceVerdict.DIFFERS}


@pytest.mark.parametrize(
    "port",
    [
        *(HTB, BORROWING, TRTCM, FAST),
        changed(HTB, cburst_bytes=25_000),
        changed(BORROWING, cburst_bytes=70_000),
        changed(BORROWING, cburst_bytes=10_000),
        changed(HTB, dequeue={"group_frames": 1, "timer_us": 60}),
        changed(TRTCM, eir_bps=30_000_000, ebs_bytes=20_000),
        changed(TRTCM, cbs_bytes=2_048),
        changed(TRTCM, dequeue={"group_frames": 1, "poll_us": 2}),
    ],
)
def test_an_exact_slice_does_not_differ(tmp_path: Path, port: dict[str, Any]) -> None:
    rows = judged(tmp_path, port, None)
    assert different(rows) == set()
    assert {row.verdict for row in rows if row.what in {"rate", "ceiling", "accuracy by length"}} == {
        SliceVerdict.AS_CONFIGURED
    }


def test_a_meter_that_is_what_the_policer_should_be_does_not_differ(tmp_path: Path) -> None:
    assert different(judged(tmp_path, TRTCM, METER)) == set()


@pytest.mark.parametrize("name", ["exact-htb", "exact-trtcm", "exact-two"])
def test_the_labs_exact_devices_do_not_differ(tmp_path: Path, name: str) -> None:
    assert different(measured_rows(name, tmp_path, seed=1)) == set()


@pytest.mark.parametrize(
    ("port", "switch", "named"),
    [
        (HTB, changed(HTB, rate_bps=95_000_000), "own: rate"),
        (HTB, changed(HTB, rate_bps=105_000_000), "own: rate"),
        (HTB, changed(HTB, other=True, rate_bps=150_000_000), "other: rate"),
        (HTB, changed(HTB, burst_bytes=36_000), "own: burst"),
        (HTB, changed(HTB, burst_bytes=44_000), "own: burst"),
        (HTB, changed(HTB, dequeue={"group_frames": 8}), "own: group"),
        (HTB, changed(HTB, dequeue={"group_frames": 1}), "own: group"),
        (HTB, changed(HTB, rate_bps=30_000_000), "own: latency"),
        (HTB, changed(HTB, limit_frames=2, burst_bytes=1_600), "own: latency"),
        (BORROWING, changed(BORROWING, ceil_bps=100_000_000), "own: ceiling"),
        (BORROWING, changed(BORROWING, ceil_bps=600_000_000), "own: ceiling"),
        (BORROWING, changed(BORROWING, rate_bps=20_000_000), "own: rate beside other"),
        (BORROWING, changed(BORROWING, rate_bps=20_000_000), "own: under attack by other"),
        (
            BORROWING,
            changed(BORROWING, ceil_bps=100_000_000, other=True, rate_bps=100_000_000),
            "other: ceiling",
        ),
        (TRTCM, changed(TRTCM, cir_bps=45_000_000), "own: rate"),
        (TRTCM, changed(TRTCM, cbs_bytes=2_048), "own: burst"),
        (TRTCM, changed(TRTCM, cbs_bytes=50_000), "own: burst"),
        (FAST, changed(FAST, dequeue={"group_frames": 4, "poll_us": 12}), "own: group"),
        (FAST, changed(FAST, dequeue={"group_frames": 16}), "own: group"),
        (TRTCM, changed(TRTCM, dequeue={"poll_us": 2_000}), "own: latency"),
        (TRTCM, changed(TRTCM, cbs_bytes=2_048), "own: latency"),
        (TRTCM, {**METER, "counts": "frame-without-fcs"}, "own: counts"),
        (TRTCM, {**METER, "counts": "udp-payload"}, "own: counts"),
        (TRTCM, {**METER, "counts": "wire"}, "own: accuracy by length"),
        (TRTCM, {**METER, "burst_bytes": 30_000}, "own: burst"),
    ],
)
def test_each_wrong_property_is_found_and_named(
    tmp_path: Path, port: dict[str, Any], switch: dict[str, Any], named: str
) -> None:
    rows = judged(tmp_path, port, switch)
    assert named in different(rows)
    assert all(row.because for row in rows if row.verdict is SliceVerdict.DIFFERS)


def test_only_what_is_wrong_is_named(tmp_path: Path) -> None:
    """A policer with a smaller bucket still has its rate."""
    wrong = different(judged(tmp_path, TRTCM, changed(TRTCM, cbs_bytes=50_000)))
    assert wrong == {"own: burst"}


def rows_of(name: str, folder: Path) -> dict[str, SliceRow]:
    return {f"{row.slice}: {row.what}": row for row in measured_rows(name, folder, seed=1)}


def test_a_meter_counted_frames_and_was_right(tmp_path: Path) -> None:
    """The complaint in docs/slicing.md: 2.76 Mbit/s of 16-byte payloads at 10 Mbit/s."""
    rows = rows_of("meter-of-frames", tmp_path)
    assert rows["slice: rate"].verdict is SliceVerdict.AS_CONFIGURED
    counts = rows["slice: counts"]
    assert (counts.configured, counts.measured) == ("udp-payload", "frame-without-fcs")
    assert "16 bytes of UDP payload a frame get 2.76 Mbit/s" in counts.because


def test_a_policer_of_one_packet_starves_tcp_at_its_full_rate(tmp_path: Path) -> None:
    """The complaint in docs/slicing.md: tens of kbit/s at 10 Mbit/s, with a bucket of 2048 bytes."""
    rows = rows_of("policer-of-one-packet", tmp_path)
    assert rows["slice: rate"].verdict is SliceVerdict.AS_CONFIGURED
    assert rows["slice: burst"].verdict is SliceVerdict.AS_CONFIGURED
    tcp = rows["slice: TCP payload"]
    assert tcp.verdict is SliceVerdict.FOLLOWS
    assert 0.02 < float(tcp.measured.split()[0]) < 0.2
    assert "full packets in its bucket: 1" in tcp.because


def test_values_that_were_not_read_are_found_from_outside(tmp_path: Path) -> None:
    """The complaint in docs/slicing.md: neither the ceiling nor the assured rate is in force."""
    rows = rows_of("unread-values", tmp_path)
    assert rows["slice: ceiling"].verdict is SliceVerdict.DIFFERS
    assert rows["slice: rate beside rest"].verdict is SliceVerdict.DIFFERS
    assert rows["slice: under attack by rest"].verdict is SliceVerdict.DIFFERS
    assert not [row for row in rows.values() if row.slice == "rest" and row.verdict is SliceVerdict.DIFFERS]


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measured_rows("policer-of-one-packet", tmp_path, seed=1)

    def none(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("loko_testbed.measure.slices.devices.transmit", none)
    monkeypatch.setattr("loko_testbed.measure.slices.devices.transfer", none)
    assert measured_rows("policer-of-one-packet", tmp_path, seed=1) == first
    with pytest.raises(AssertionError):
        measured_rows("policer-of-one-packet", tmp_path, seed=2)


def test_the_command_says_it_in_a_table_in_json_and_by_its_status(tmp_path: Path) -> None:
    words = ["bench", "slice", "--out", str(tmp_path), "--device"]
    done = CliRunner().invoke(app, [*words, "meter-of-frames", "--json"])
    assert done.exit_code == 1
    assert {row["verdict"] for row in json.loads(done.stdout)} >= {"differs", "as configured"}
    done = CliRunner().invoke(app, [*words, "policer-of-one-packet"])
    assert done.exit_code == 0
    assert "TCP payload" in done.stdout


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"configured": "two", "switch": {"kind": "virtual"}}, "title"),
        ({"title": "x", "configured": "nowhere", "switch": {"kind": "virtual"}}, "nowhere"),
        ({"title": "x", "configured": "trtcm", "switch": {"kind": "open-vswitch"}}, "choose a port of HTB"),
        ({"title": "x", "configured": "two", "counts": "cells", "switch": {"kind": "virtual"}}, "counts"),
        (
            {"title": "x", "configured": "two", "switch": {"kind": "open-vswitch-dpdk"}},
            "which Open vSwitch with DPDK lacks",
        ),
        (
            {
                "title": "x",
                "configured": "dpdk",
                "switch": {"kind": "open-vswitch-dpdk", "policer": "egress-policer"},
            },
            "has one rate for the whole port: give one queue without eir_bps",
        ),
        (
            {"title": "x", "configured": "dpdk", "switch": {"kind": "open-vswitch-dpdk", "policer": "meter"}},
            "policer",
        ),
    ],
)
def test_wrong_devices_are_refused_in_one_line(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    path = tmp_path / "device.yml"
    path.write_text(yaml.safe_dump(document))
    done = CliRunner().invoke(app, ["bench", "slice", "--device", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_device_of_the_lab_can_be_read_and_has_parts() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.yml"))
    assert {"open-vswitch", "unread-values"} <= set(names)
    for name in names:
        switch = load_sliced_switch(name)
        assert measurements.parts(switch.port(), switch.counted_as(), open_device(switch))


def test_policers_of_dpdk_get_bytes_per_second() -> None:
    port = load_slices("dpdk")
    assert isinstance(port, TrtcmPort)
    values = policed_port.values(Policer.TRTCM, port.queues[1])
    assert values == {"cir": 6_250_000, "cbs": 60_000, "eir": 2_500_000, "ebs": 30_000}
    assert policed_port.values(Policer.EGRESS, port.queues[0]) == {"cir": 1_250_000, "cbs": 24_000}


class Meter:
    """Two token buckets with whole bytes and nanoseconds (RFC 4115): green 0, yellow 1, red 2."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._rates = [values["cir"], values["eir"]]
        self._sizes = [float(values["cbs"]), float(values["ebs"])]
        self._levels = list(self._sizes)

    def pass_time(self, seconds: float) -> None:
        for which, size in enumerate(self._sizes):
            self._levels[which] = min(size, self._levels[which] + self._rates[which] * seconds)

    def colour(self, length: int, at_least: int = 0) -> int:
        for which in range(at_least, 2):
            if self._levels[which] >= length:
                self._levels[which] -= length
                return which
        return 2


RATES = st.sampled_from([0, 8_000_000, 30_000_000, 900_000_000])


@given(
    st.lists(st.tuples(RATES, RATES, st.integers(1500, 20_000)), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(46, 1500), st.floats(0, 0.01)), min_size=1, max_size=200
    ),
)
def test_the_meter_of_a_port_drops_nothing_that_its_queues_let_pass(
    queues: list[tuple[int, int, int]], packets: list[tuple[int, int, float]]
) -> None:
    of_queues = [
        TrtcmQueue(name=f"q{number}", cir_bps=cir + 8, cbs_bytes=size, eir_bps=eir, ebs_bytes=size // 2)
        for number, (cir, eir, size) in enumerate(queues)
    ]
    port = load_slices("dpdk")
    assert isinstance(port, TrtcmPort)
    meters = [Meter(policed_port.values(Policer.TRTCM, queue)) for queue in of_queues]
    whole = Meter(policed_port.room_for_all(port.model_copy(update={"queues": of_queues})))
    for number, length, gap_s in packets:
        for meter in (*meters, whole):
            meter.pass_time(gap_s)
        colour = meters[number % len(meters)].colour(length)
        assert colour == 2 or whole.colour(length, at_least=colour) < 2


class FewShortFrames:
    """A switch limited to this rate, counted without FCS, and to this number of frames per second."""

    several, real_time, most_pps = False, False, 1e9

    def __init__(self, rate_bps: float, most_pps: float) -> None:
        self._rate_bps, self._most_pps = rate_bps, most_pps

    def parameters(self) -> dict[str, Any]:
        return {}

    def send(self, releases: Mapping[int, Release], _seed: int) -> dict[int, PacketTimes]:
        return {number: self._carry(release) for number, release in releases.items()}

    def _carry(self, release: Release) -> PacketTimes:
        gap_ns = max(8e9 * (release.frame_bytes - 4) / self._rate_bps, 1e9 / self._most_pps)
        sent_ns, received_ns, free_ns = release.instants_ns, [], 0.0
        for at_ns in sent_ns.tolist():
            passes = at_ns >= free_ns
            free_ns = max(free_ns, at_ns - gap_ns) + gap_ns if passes else free_ns
            received_ns.append(at_ns if passes else -1)
        return PacketTimes(sent_ns, np.array(received_ns))

    def tcp(self, *_: int) -> None:
        pass


def test_a_machine_that_carries_few_short_frames_is_no_other_rate() -> None:
    switch = load_sliced_switch("exact-htb")
    port = switch.port()
    device = FewShortFrames(200e6, 30_000)
    slice_part = measurements.Slice(port, 0, switch.counted_as())
    samples = {measurements.key("slice", measurements.RATE): dict(slice_part.rate(device, 1))}
    judged = {row.what: row for row in rows(port, switch.counted_as(), samples)}
    assert judged["rate"].verdict is SliceVerdict.AS_CONFIGURED
    assert judged["rate"].measured == "200 Mbit/s at 1518 bytes"
    accuracy = judged["accuracy by length"]
    assert accuracy.verdict is SliceVerdict.DIFFERS
    assert "carries fewer short frames" in accuracy.because


class TwoSenders:
    """A device in real time whose second sender takes `slower` times as long as it should."""

    several = real_time = True
    most_pps = 1e6

    def __init__(self, slower: float) -> None:
        self._slower = slower

    def parameters(self) -> dict[str, Any]:
        return {}

    def send(self, releases: Mapping[int, Release], _seed: int) -> dict[int, PacketTimes]:
        at_ns = {number: release.instants_ns for number, release in releases.items()}
        at_ns[1] = (at_ns[1] * self._slower).astype(np.int64)
        return {number: PacketTimes(sent_ns, sent_ns + 700) for number, sent_ns in at_ns.items()}

    def tcp(self, *_: int) -> None:
        return None


def test_what_a_slow_second_sender_disturbs_is_not_measured() -> None:
    port = load_slices("borrowing")
    own = measurements.Slice(port, 0, CountedBytes.FRAME_WITHOUT_FCS)
    for measure in (own.crowded(1), own.attacked(1)):
        assert not list(measure(TwoSenders(1.2), 1))
        assert [length for length, _ in measure(TwoSenders(1.0), 1)]
    times = dict(own.attacked(1)(TwoSenders(1.0), 1))
    assert all((numbers == 700).all() for numbers in times.values()), "a veth hands on whole frames"


def test_a_host_in_real_time_sends_no_faster_than_it_can() -> None:
    own = measurements.Slice(load_slices("htb"), 0, CountedBytes.FRAME_WITHOUT_FCS)
    flood = own._flood(TwoSenders(1.0), 0, 64, 1_000_000)
    assert len(flood.instants_ns) == 1_001


def test_what_rates_count_differs_by_headers() -> None:
    assert [counts.more_bytes for counts in CountedBytes] == [20, 0, -4, -18, -46]
    assert measurements.FRAMES_BYTES[0] + CountedBytes.UDP_PAYLOAD.more_bytes == 18


def test_of_several_turns_the_one_counts_that_the_host_disturbed_least() -> None:
    late, lossy, good = ([5, 90, 6], [1, -1, 2], [5, 7, 6])
    turns = [np.array(turn) for turn in (late, lossy, good)]
    assert measurements.least_disturbed(measurements.LATENCY, turns).tolist() == good
    assert measurements.least_disturbed(measurements.BURST, turns).tolist() == good
    rates = [np.array([100, span, 150, span]) for span in (2_000, 900, 1_000)]
    assert measurements.least_disturbed(measurements.RATE, rates).tolist() == [100, 1_000, 150, 1_000]


def test_a_devices_port_is_looked_for_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text((LABS / "slicing" / "slices" / "two.yml").read_text())
    device = tmp_path / "device.yml"
    device.write_text("title: mine\nconfigured: mine.yml\nswitch: {kind: virtual, does: mine.yml}\n")
    switch = load_sliced_switch(device)
    assert switch.port() == load_slices("two")
    assert isinstance(switch.switch, VirtualSwitch)
    assert switch.switch.does == str(tmp_path / "mine.yml")
