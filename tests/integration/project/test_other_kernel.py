"""Tests in another kernel, as this one may lack modules: Open vSwitch's datapath, flower, and fq."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from live_harness import needs_namespaces
from other_kernel import IS_HERE, TIMEOUT_S, said_in_other_kernel

from loko_testbed.instruments.programs import locate
from loko_testbed.live.datapaths import missing_for_dpdk
from loko_testbed.live.openvswitch import SCHEMA

pytestmark = [
    pytest.mark.live,
    needs_namespaces,
    pytest.mark.timeout(TIMEOUT_S + 60),  # the script has its own timeout
    pytest.mark.skipif(not IS_HERE, reason="needs another kernel in QEMU: make other-kernel"),
]

ENQUEUED = """
import json, re, subprocess, time
from pathlib import Path
from loko_testbed.measure.bench.software_switches.ports import make_line, queue_class
from loko_testbed.instruments.packet_tap import packet_socket
from loko_testbed.measure.slices.live_port import EGRESS, SOURCE, switch_between
from loko_testbed.live.datapaths import kernel

frame = bytes.fromhex("020000000002" "020000000001" "0800") + b"\\x45" + bytes(85)
with switch_between(Path("/run/ovs"), ["in_port=1,actions=enqueue:2:3"], datapath=kernel()):
    make_line(EGRESS, 10_000_000)
    with packet_socket(SOURCE, 0) as sender:
        for _ in range(10):
            sender.send(frame)
            time.sleep(0.05)
    time.sleep(1)
    shown = subprocess.check_output(["tc", "-s", "class", "show", "dev", EGRESS], text=True)
    frames = re.search(f"class htb {queue_class(3)} .*\\n Sent .* bytes (.*) pkt", shown).group(1)
    datapaths = subprocess.check_output(["ovs-dpctl", "dump-dps"], text=True).split()
    print(json.dumps({"frames": int(frames), "datapaths": datapaths}))
"""

FILTERED = """
import json
from loko_testbed.measure.bench.software_switches.named_switches import open_switch
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.predictability.subject import FrameStream, transmit, evenly
from loko_testbed.measure.predictability.table_iii import TimingScenario, flow_mods, frame
from loko_testbed.simulation.runner import LOST

with open_switch("linux-bridge") as subject:
    came = {}
    for match in ("five-tuple", "dl-dst", "all"):
        instants_ns = evenly(20, 50_000_000)
        stream = FrameStream(enters=IN_PORT, leaves=OUT_PORT, frame=frame(306), instants_ns=instants_ns)
        [sent] = transmit(subject, flow_mods(TimingScenario(entries=5, match=match)), [stream], seed=1)
        came[match] = int((sent.received_ns != LOST).sum())
    print(json.dumps({"came": came, "remark": subject.live.remark}))
"""


@pytest.mark.skipif(not SCHEMA.is_file(), reason="needs Open vSwitch: openvswitch-switch")
def test_the_kernels_datapath_forwards_and_puts_frames_into_the_queue_of_enqueue(tmp_path: Path) -> None:
    said = json.loads(said_in_other_kernel(ENQUEUED, tmp_path).splitlines()[-1])
    assert said == {"frames": 10, "datapaths": ["system@ovs-system"]}


def test_filters_of_flower_forward_where_the_kernel_has_them(tmp_path: Path) -> None:
    said = json.loads(said_in_other_kernel(FILTERED, tmp_path).splitlines()[-1])
    assert said["remark"] == "its filters are those of flower"
    assert min(said["came"].values()) > 10


BY_ETF = """
from functools import partial
from loko_testbed.reproduce.figure_types.slices import htb_port
from loko_testbed.live.departure_times import HoldingDiscipline, departures

with_departures = htb_port.transmit

def transmit(request, folder):
    htb_port.departures = partial(departures, holder=HoldingDiscipline.ETF)
    return with_departures(request, folder)
"""

SENT = """
import json
import numpy as np
from loko_testbed.measure.slices.port import transmit_live
from loko_testbed.measure.slices.release import Release
from loko_testbed.simulation.runner import LOST
from loko.slicing.document import HtbPort, TrtcmPort, load_slices

RATE_BPS = 10_000_000

def sent(port, share, frames=1000):
    counted = 1514 if isinstance(port, HtbPort) else 1500
    every_ns = counted * 8e9 / RATE_BPS / share
    instants_ns = (np.arange(frames) * every_ns).astype(np.int64)
    release = Release(host="source", instants_ns=instants_ns, queue=0, frame_bytes=1518)
    [came] = transmit_live(port, {0: release})[0].values()
    there = came.received_ns != LOST
    delays_ms = (came.received_ns - came.sent_ns)[there] / 1e6
    lasted_s = float(np.ptp(came.received_ns[there])) / 1e9
    return {
        "longest_ms": float(delays_ms.max()),
        "lost": int((~there).sum()),
        "rate": counted * 8 * (len(delays_ms) - 1) / lasted_s / RATE_BPS,
    }
"""
"""Sends full frames through the only queue of a port, which has 10 Mbit/s, and reports the outcome."""

BOUNDED = (
    f"""
import json
import os
import sys
from pathlib import Path
# Each sending is a process of its own, which has to find the function.
Path("/run/by_etf.py").write_text({BY_ETF!r})
os.environ["PYTHONPATH"] = "/run"
sys.path.insert(0, "/run")
"""
    + SENT
    + """
import by_etf
from loko_testbed.reproduce.figure_types.slices import htb_port
from loko_testbed.measure.slices.injection import best_injection_method

def port(name, changes=None):
    values = load_slices(name).model_dump()
    [queue] = values["queues"]
    queue |= {"rate_bps": RATE_BPS, "burst_bytes": 3036, "flow": None} | (changes or {})
    return HtbPort.model_validate(values | {"link_rate_bps": 100_000_000})

bound = port("bounded", {"drops": {"kind": "late", "after_us": 20_000}})
sent(bound, 0.5, frames=50)  # what is read from files now, in this machine's time, disturbs nothing later
said = {
    "injection": best_injection_method(),
    "bounded": sent(bound, 2.0),
    "conforming": sent(bound, 0.98),
    "htb": sent(port("htb"), 2.0),
    "codel": sent(port("codel"), 2.0),
}
htb_port.transmit = by_etf.transmit
said["etf"] = sent(bound, 2.0)
said["conforming by etf"] = sent(bound, 0.98)
print(json.dumps(said))
"""
)


@pytest.mark.skipif(not SCHEMA.is_file(), reason="needs Open vSwitch: openvswitch-switch")
def test_a_queue_with_a_bound_sends_in_time_or_never_and_keeps_its_rate(tmp_path: Path) -> None:
    said = json.loads(said_in_other_kernel(BOUNDED, tmp_path).splitlines()[-1])
    for holder, conforming in (("bounded", "conforming"), ("etf", "conforming by etf")):
        assert said[conforming]["lost"] == 0
        assert said[holder]["longest_ms"] < 20 + 1  # the switch itself adds up to 1 ms
        assert said[holder]["lost"] > 400
        assert said[holder]["rate"] == pytest.approx(1, abs=0.02)
    assert said["injection"] == "kernel"
    assert said["htb"]["lost"] == 0, "its queue has room for 1000 frames, and none waits in a socket"
    assert said["htb"]["longest_ms"] > 500, "half of what comes in 0.6 s waits"
    for beside in ("htb", "codel"):
        assert said[beside]["longest_ms"] > 40
        assert said[beside]["rate"] == pytest.approx(1, abs=0.02)


POLICED_PORT = """
from loko.slicing.document import TrtcmPort, load_slices

RATE_BPS = 10_000_000

def policed_port(bucket_bytes):
    values = load_slices("trtcm").model_dump()
    [queue] = values["queues"]
    queue |= {"cir_bps": RATE_BPS, "cbs_bytes": bucket_bytes, "flow": None}
    return TrtcmPort.model_validate(values | {"link_rate_bps": 100_000_000})
"""

POLICED = (
    SENT
    + POLICED_PORT
    + """
port = policed_port(3036)
sent(port, 0.5, frames=50)
print(json.dumps({"trtcm": sent(port, 2.0), "conforming": sent(port, 0.98)}))
"""
)


@pytest.mark.skipif(missing_for_dpdk() is not None, reason="needs Open vSwitch with DPDK: make dpdk")
def test_a_policer_of_dpdk_delays_nothing_and_keeps_its_rate(tmp_path: Path) -> None:
    """Its thread polls on the only core, which the sender takes over for each frame."""
    said = json.loads(said_in_other_kernel(POLICED, tmp_path).splitlines()[-1])
    assert said["conforming"]["lost"] == 0
    assert said["trtcm"]["longest_ms"] < 3
    assert said["trtcm"]["lost"] > 400
    assert said["trtcm"]["rate"] == pytest.approx(1, abs=0.02)


TRANSFERRED = (
    POLICED_PORT
    + """
import json
from pathlib import Path
from loko_testbed.reproduce.figure_types.slices import tcp_port

SECONDS, SKIPPED_S = 6, 1.5

def payload_bps(bucket_bytes):
    folder = Path(f"/run/{bucket_bytes}")
    folder.mkdir()
    port = policed_port(bucket_bytes)
    request = tcp_port.TransferRequest(port=port, congestion_control="cubic", seconds=SECONDS)
    [reply] = tcp_port.transmit_all([request], folder)
    counted = reply.received_end_s > SKIPPED_S
    return float(reply.received_bytes[counted].sum()) * 8 / (SECONDS - SKIPPED_S)

print(json.dumps({size: payload_bps(size) for size in (3036, 15000)}))
"""
)


QUEUED = """
import json
from pathlib import Path
from loko_testbed.reproduce.figure_types.slices import tcp_port
from loko_testbed.measure.slices.injection import best_injection_method
from loko.slicing.document import HtbPort, load_slices

values = load_slices("htb").model_dump()
[queue] = values["queues"]
queue |= {"rate_bps": 10_000_000, "burst_bytes": 3036, "flow": None}
port = HtbPort.model_validate(values | {"link_rate_bps": 100_000_000})
folder = Path("/run/transfer")
folder.mkdir()
request = tcp_port.TransferRequest(port=port, congestion_control="cubic", seconds=3)
[reply] = tcp_port.transmit_all([request], folder)
print(json.dumps({
    "injection": best_injection_method(),
    "longest_ms": float(reply.round_trip_us.max()) / 1e3,
    "switch_cpu": reply.busy.switch,
}))
"""


@pytest.mark.skipif(not SCHEMA.is_file(), reason="needs Open vSwitch: openvswitch-switch")
@pytest.mark.skipif(locate("iperf3") is None, reason="needs iperf3")
def test_tcp_fills_a_queue_behind_the_kernels_datapath_as_it_does_behind_a_card(tmp_path: Path) -> None:
    said = json.loads(said_in_other_kernel(QUEUED, tmp_path).splitlines()[-1])
    assert said["injection"] == "kernel"
    assert said["longest_ms"] > 50, "TCP's small queues would keep it below 5 ms"
    assert said["switch_cpu"] < 0.05, "the slicing paper's limit; the kernel forwards"


@pytest.mark.skipif(missing_for_dpdk() is not None, reason="needs Open vSwitch with DPDK: make dpdk")
def test_a_policer_of_dpdk_starves_tcp_if_its_bucket_is_small(tmp_path: Path) -> None:
    """The simulator says so, too: 0.25 and 3.4 Mbit/s of 10."""
    payload_bps = json.loads(said_in_other_kernel(TRANSFERRED, tmp_path).splitlines()[-1])
    assert payload_bps["3036"] < 0.05 * 10e6
    assert 0.1 * 10e6 < payload_bps["15000"] < 0.5 * 10e6
