"""Sliced ports: which bytes count, the goodput, equation 1, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from loko.document import InputError
from loko.slicing.bound import NoSliceBound, SliceBound, delay_bound
from loko.slicing.document import HtbPort, HtbQueue, TrtcmPort, load_slices
from loko.slicing.goodput import counted_bps, goodput_bps
from loko.slicing.latency import MeanLatency, effective_rate, mean_latency
from loko.slicing.lengths import Protocol, Scheduler, counted, payload
from loko.slicing.settings import scheduler_settings
from loko_testbed.cli.main import app

HTB: dict[str, Any] = {
    "scheduler": "htb",
    "link_rate_bps": 1_000_000_000,
    "queues": [
        {
            "name": "a",
            "rate_bps": 100_000_000,
            "burst_bytes": 20_000,
            "flow": {"rate_bps": 50_000_000, "burst_bytes": 15_180, "frame_bytes": 1518},
        }
    ],
}
TRTCM: dict[str, Any] = {
    "scheduler": "trtcm",
    "link_rate_bps": 1_000_000_000,
    "dequeue": {"group_frames": 8, "poll_us": 24},
    "queues": [
        {
            "name": "a",
            "cir_bps": 100_000_000,
            "cbs_bytes": 60_000,
            "flow": {"rate_bps": 50_000_000, "burst_bytes": 15_180, "frame_bytes": 1518},
        }
    ],
}


def changed(values: dict[str, Any], *, queue: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(values)) | others
    copy["queues"][0] |= queue or {}
    return dict(copy)


def htb(**values: Any) -> HtbPort:
    return HtbPort.model_validate(changed(HTB, **values))


def trtcm(**values: Any) -> TrtcmPort:
    return TrtcmPort.model_validate(changed(TRTCM, **values))


def written(path: Path, values: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(values))
    return str(path)


def test_a_limit_of_frames_gives_what_was_complained_of() -> None:
    """10 Mbit/s that count frames as 58 bytes carry 2.76 Mbit/s of their 16-byte payloads."""
    frame_bytes = 16 + 8 + 20 + 14 + 4
    assert counted(Scheduler.HTB, frame_bytes) == 58
    assert 10e6 * payload(Protocol.UDP, frame_bytes) / 58 == pytest.approx(2.76e6, rel=1e-3)


def test_a_policer_counts_packets_and_a_class_frames() -> None:
    for frame_bytes in (64, 1518):
        class_port, policed_port = htb(), trtcm()
        assert goodput_bps(class_port, class_port.queues[0], frame_bytes, Protocol.UDP) == pytest.approx(
            100e6 * (frame_bytes - 46) / (frame_bytes - 4)
        )
        assert goodput_bps(policed_port, policed_port.queues[0], frame_bytes, Protocol.UDP) == pytest.approx(
            100e6 * (frame_bytes - 46) / (frame_bytes - 18)
        )


def test_a_frame_without_payload_gives_none() -> None:
    port = htb()
    assert goodput_bps(port, port.queues[0], 64, Protocol.TCP) == 0


def test_nothing_is_faster_than_the_link() -> None:
    port = htb(queue={"rate_bps": 1_000_000_000, "flow": None})
    assert counted_bps(port, port.queues[0], 64) == pytest.approx(1e9 * 60 / 84)
    polls = {"group_frames": 32, "poll_us": 10}
    port = trtcm(queue={"cir_bps": 1_000_000_000, "flow": None}, dequeue=polls)
    assert counted_bps(port, port.queues[0], 64) == pytest.approx(1e9 * 46 / 84)


def test_nothing_is_faster_than_the_polls() -> None:
    """8 frames every 24 us."""
    port = trtcm(queue={"cir_bps": 1_000_000_000, "flow": None})
    assert counted_bps(port, port.queues[0], 64) == pytest.approx(8 * 46 * 8 / 24e-6)


def test_a_bucket_that_holds_no_packet_passes_none() -> None:
    port = trtcm(queue={"cbs_bytes": 1_000, "flow": None})
    assert counted_bps(port, port.queues[0], 1518) == 0
    assert counted_bps(port, port.queues[0], 512) == pytest.approx(100e6)


@pytest.mark.parametrize(
    ("rate_bps", "quantum_bytes"),
    [
        (4_000_000, 50_000),
        (600_000_000, 200_000),
        (10_000_000_000, 200_000),
        (50_000, 1_000),
        (800_000, 10_000),
    ],
)
def test_a_queue_takes_turns_of_the_quantum_that_tc_computes(rate_bps: int, quantum_bytes: int) -> None:
    """Its rate in bytes a second over r2q (10), within 1,000 and 200,000 bytes."""
    queue = {"rate_bps": rate_bps, "ceil_bps": 10_000_000_000, "flow": None}
    default = HtbPort.model_validate(changed(HTB, queue=queue, link_rate_bps=10_000_000_000))
    stated = HtbPort.model_validate(
        changed(HTB, queue=queue | {"quantum_bytes": quantum_bytes}, link_rate_bps=10_000_000_000)
    )
    assert scheduler_settings(default) == scheduler_settings(stated)
    assert scheduler_settings(default)["classes"][1]["quantum_bytes"] == quantum_bytes


def test_equation_1_at_the_papers_numbers() -> None:
    """mu for 500 Mbit/s, and the cost of half a per cent of utilisation (facts mu_500, sens_half_pct)."""
    assert effective_rate(500e6, 16, 1500) == pytest.approx(2604.1667, rel=1e-6)
    mean = MeanLatency(groups_per_s=effective_rate(500e6, 16, 1500), utilisation=0.98)
    assert mean.mean_us == pytest.approx(19_200)
    assert mean.mean_us_at_more == pytest.approx(25_600)
    assert MeanLatency(groups_per_s=1, utilisation=1).mean_us == float("inf")


def test_a_policer_dequeues_at_its_polls() -> None:
    port = trtcm()
    mean = mean_latency(port, port.queues[0])
    assert mean is not None
    assert mean.groups_per_s == pytest.approx(1e6 / 24)
    assert mean.utilisation == pytest.approx(50e6 * 1500 / 1518 / (8 * 1500 * 8 / 24e-6))


def test_without_a_flow_there_is_neither_mean_nor_bound() -> None:
    port = htb(queue={"flow": None})
    assert mean_latency(port, port.queues[0]) is None
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, NoSliceBound)
    assert "give the queue a flow" in bound.because


def bound_us(port: HtbPort | TrtcmPort) -> float:
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, SliceBound), bound
    return bound.delay_us


def test_a_burst_that_the_bucket_holds_waits_for_the_wire_alone() -> None:
    wire_us = 1538 * 8e-3
    work_us = wire_us + (20_000 + 1514) * wire_us / 1514
    wait_us = work_us / (1 - 100e6 * 1538 / 1514 / 1e9)
    assert bound_us(htb()) == pytest.approx(wait_us)


def test_a_longer_burst_waits_for_tokens_and_for_the_timer() -> None:
    flow = {"rate_bps": 50_000_000, "burst_bytes": 60_720, "frame_bytes": 1518}
    exact = bound_us(htb(queue={"flow": flow}))
    late = bound_us(htb(queue={"flow": flow}, dequeue={"group_frames": 1, "timer_us": 60}))
    assert late == pytest.approx(exact + 60)
    short = bound_us(htb())
    assert exact == pytest.approx(short + (60_720 * 1514 / 1518 - 20_000 - 1514) * 8 / 100 + short, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "because"),
    [
        ({"queue": {"rate_bps": 40_000_000}}, "raise rate_bps"),
        ({"queue": {"ceil_bps": 200_000_000}}, "set ceil_bps to its rate"),
        ({"queue": {"cburst_bytes": 30_000}}, "cburst_bytes to its burst"),
        ({"queue": {"burst_bytes": 100}}, "raise burst_bytes to"),
        ({"queue": {"limit_frames": 2}}, "raise limit_frames"),
        ({"queue": {"rate_bps": 990_000_000}}, "leave some free"),
    ],
)
def test_what_is_not_proved_says_why(values: dict[str, Any], because: str) -> None:
    port = htb(**values)
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, NoSliceBound)
    assert because in bound.because


def test_a_burst_raised_as_advised_has_a_bound() -> None:
    port = htb(queue={"burst_bytes": 100}, dequeue={"group_frames": 4, "timer_us": 60})
    unbounded = delay_bound(port, port.queues[0])
    assert isinstance(unbounded, NoSliceBound)
    advised = int(unbounded.because.rsplit(" ", 1)[1])
    raised = {"burst_bytes": advised}
    assert bound_us(htb(queue=raised, dequeue={"group_frames": 4, "timer_us": 60})) > 0
    lower = {"burst_bytes": advised - 2}
    still = htb(queue=lower, dequeue={"group_frames": 4, "timer_us": 60})
    assert isinstance(delay_bound(still, still.queues[0]), NoSliceBound)


def test_a_committed_burst_raised_as_advised_has_a_bound() -> None:
    port = trtcm(queue={"cbs_bytes": 15_000})
    unbounded = delay_bound(port, port.queues[0])
    assert isinstance(unbounded, NoSliceBound)
    advised = int(unbounded.because.rsplit(" ", 1)[1])
    assert bound_us(trtcm(queue={"cbs_bytes": advised})) > 0


def test_a_queue_that_drops_what_is_late_always_has_a_bound() -> None:
    late = {"kind": "late", "after_us": 1_000}
    proved = bound_us(htb())
    assert proved < 1_000
    kept = delay_bound(htb(queue={"drops": late}), htb(queue={"drops": late}).queues[0])
    assert kept == SliceBound(proved)
    # A longer bound, or none at all, does not matter to a queue that drops late frames.
    for queue in ({"flow": None}, {"rate_bps": 40_000_000}, {"burst_bytes": 100}):
        port = htb(queue=queue | {"drops": late}, latency_us=20)
        bound = delay_bound(port, port.queues[0])
        assert isinstance(bound, SliceBound)
        assert bound.delay_us == 1_020
        assert bound.lossy_because is not None
    port = htb(queue={"drops": {"kind": "late", "after_us": 100}})
    short = delay_bound(port, port.queues[0])
    assert isinstance(short, SliceBound)
    assert short.delay_us == 100
    assert "it may wait" in (short.lossy_because or "")


def test_codel_has_a_bound_only_where_it_never_drops() -> None:
    assert bound_us(htb(queue={"drops": {"kind": "codel"}})) == bound_us(htb())
    port = htb(queue={"drops": {"kind": "codel", "target_us": 10}})
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, NoSliceBound)
    assert "raise target_us" in bound.because


def test_the_model_says_that_late_frames_are_lost() -> None:
    said = CliRunner().invoke(app, ["model", "slice", "bounded"]).output
    assert "is later than 5020.0 us, but some may be lost: nothing says that all of its flow comes in" in said
    (queue,) = json.loads(CliRunner().invoke(app, ["model", "slice", "bounded", "--json"]).output)
    assert queue["latency_us"]["bound"] == 5_020
    assert "raise burst_bytes" in queue["lossy_because"]


def test_a_policed_queue_has_no_bound_beside_one_of_which_nothing_is_said() -> None:
    values = changed(TRTCM)
    values["queues"].append({"name": "b", "cir_bps": 1_000_000, "cbs_bytes": 2_000})
    port = TrtcmPort.model_validate(values)
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, NoSliceBound)
    assert "'b'" in bound.because


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (changed(HTB, queue={"rate_bps": 2_000_000_000}), "queue 'a' may send 2000000000 bit/s"),
        (changed(HTB, queue={"ceil_bps": 1_000_000}), "is below its rate_bps"),
        (changed(HTB, root_rate_bps=2_000_000_000), "root_rate_bps 2000000000 is above the link's"),
        (changed(HTB, root_rate_bps=50_000_000), "lower its ceil_bps or rate_bps"),
        (changed(HTB) | {"queues": HTB["queues"] * 2}, "two queues are named 'a'"),
        (
            changed(HTB, root_rate_bps=150_000_000)
            | {"queues": [HTB["queues"][0], HTB["queues"][0] | {"name": "b"}]},
            "assured 200000000 bit/s together",
        ),
        (changed(TRTCM, queue={"cbs_bytes": 1_000}), "no bucket holds a packet of 1500 bytes"),
        (changed(TRTCM) | {"scheduler": "prio"}, "scheduler"),
        (changed(HTB, queue={"rate": 1}), "did you mean"),
        (changed(HTB, queue={"rate_bps": "10Mbit"}), "queues.0.rate_bps: must be a whole number"),
        (changed(HTB, queue={"drops": {"kind": "late"}}), "after_us: is missing"),
        (changed(HTB, queue={"drops": {"kind": "late", "after_us": 0}}), "must be at least 0.001"),
        (changed(HTB, queue={"drops": {"kind": "red"}}), "'late', 'codel'"),
        (changed(HTB, queue={"drops": "late"}), "keys with values"),
        (changed(TRTCM, queue={"drops": {"kind": "codel"}}), "unknown key 'drops'"),
        (["htb"], "keys with values, as in 'name: value'"),
    ],
)
def test_wrong_ports_are_refused_in_one_line(tmp_path: Path, values: Any, said: str) -> None:
    path = written(tmp_path / "port.yml", values)
    with pytest.raises(InputError) as refused:
        load_slices(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    result = CliRunner().invoke(app, ["model", "slice", path])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_the_model_is_printed_for_each_queue() -> None:
    result = CliRunner().invoke(app, ["model", "slice", "two", "--json"])
    assert result.exit_code == 0, result.output
    queue = json.loads(result.stdout)[0]
    assert {"name", "configured_bps", "goodput_bps", "latency_us"} <= queue.keys()
    assert {"64", "1500"} <= queue["goodput_bps"].keys()
    assert queue["latency_us"]["bound"] > 0
    text = CliRunner().invoke(app, ["model", "slice", "trtcm"])
    assert text.exit_code == 0
    assert "IP packet" in text.output


def test_slice_and_profiles_are_not_mixed_up() -> None:
    for words, said in [
        (["slice"], "name the file"),
        (["slice", "htb", "--entries", "3"], "takes no option but --json"),
        (["zodiac-fx", "htb"], "one word too many"),
        (["open-vswitch-1g"], "loko model slice FILE"),
    ]:
        result = CliRunner().invoke(app, ["model", *words])
        assert result.exit_code == 2
        assert said in result.output


def test_every_port_of_the_lab_can_be_read() -> None:
    for name in ("htb", "trtcm", "two"):
        assert load_slices(name).queues
    assert isinstance(load_slices("htb").queues[0], HtbQueue)
