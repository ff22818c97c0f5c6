"""Transfers of iperf3: what is read from its reports, and what a sliced port refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from loko.slicing.document import HtbPort, load_slices
from loko_testbed.live import shaping
from loko_testbed.measure.slices import htb_port, tcp_port
from loko_testbed.measure.slices.injection import InjectionMethod
from loko_testbed.measure.slices.tcp_port import CpuShares, reply_of
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.live_transfers import compute as live_transfers
from loko_testbed.reproduce.figure_types.live_transfers.compute import live_of
from loko_testbed.reproduce.figure_types.live_transfers.document import LiveTransfers
from loko_testbed.simulation.options import NoProgress, Options
from loko_testbed.simulation.runner import RunError

CPU = CpuShares(switch=0.1, softirq=0.1, machine=1.0)


def interval(end_s: float, **values: int) -> dict[str, Any]:
    return {"streams": [{"end": end_s, **values}]}


def reports() -> tuple[dict[str, Any], dict[str, Any]]:
    sender = {
        "start": {"tcp_mss_default": 1000},
        "intervals": [interval(n, retransmits=n, snd_cwnd=1000 * n, rtt=500 * n) for n in (1, 2, 3, 4)],
    }
    receiver = {"intervals": [interval(n, bytes=125_000 * n) for n in (1, 2, 3, 4, 5)]}
    return sender, receiver


def test_the_first_quarter_and_what_comes_after_the_end_are_left_out() -> None:
    live = live_of(reply_of(*reports(), idle=CPU, busy=CPU, refused=0), 4)
    assert live.payload_bps == pytest.approx(1e6 * (2 + 3 + 4) / 3)
    assert live.retransmissions_pps == pytest.approx((2 + 3 + 4) / 3)
    assert live.window_packets == pytest.approx(3)
    assert live.round_trip_ms == pytest.approx(1.5)
    with pytest.raises(RunError, match="make seconds longer"):
        live_of(reply_of(*reports(), idle=CPU, busy=CPU, refused=0), 40)


def test_what_iperf3_complains_of_is_one_line() -> None:
    sender, receiver = reports()
    with pytest.raises(RunError, match=r"^iperf3: unable to connect$"):
        reply_of({"error": "unable to connect"}, receiver, idle=CPU, busy=CPU, refused=0)
    del sender["intervals"][0]["streams"][0]["rtt"]
    with pytest.raises(RunError, match=r"use iperf3 3\.9 or newer"):
        reply_of(sender, receiver, idle=CPU, busy=CPU, refused=0)


def test_what_the_switch_does_not_carry_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With 4 intervals of 1 to 4 Mbit/s, the switch carries 3 Mbit/s, however fast its queue."""
    document = experiments()["slicing/iperf3"]
    assert isinstance(document, LiveTransfers)
    figure = document.model_copy(
        update={
            "queue_rates_mbps": [1, 10],
            "congestion_controls": ["reno"],
            "quick": document.quick.model_copy(update={"seconds": 4}),
        }
    )
    asked = []

    def carry_alone(_carry: object, requests: list[tcp_port.TransferRequest]) -> list[tcp_port.TransferReply]:
        asked.extend(request.port.queues[0].rate_bps for request in requests)
        return [reply_of(*reports(), idle=CPU, busy=CPU, refused=0) for _ in requests]

    monkeypatch.setattr(live_transfers, "run_isolated", carry_alone)
    options = Options(mode="live", seed=1, out=tmp_path, quick=True)
    findings = live_transfers.compute(figure, options, NoProgress())[0].findings
    assert asked == [1_000_000_000, 1_000_000, 10_000_000]
    assert findings["switch_carries_mbps"] == pytest.approx(3)
    assert "virtual_to_iperf3_reno_1_percent" in findings
    assert "virtual_to_iperf3_reno_10_percent" not in findings
    (result,) = judge(
        figure.model_copy(
            update={"claims": [claim for claim in figure.claims if "10 Mbit/s" in claim.claim][:1]}
        ),
        findings=findings,
    )
    assert result.holds is None
    assert "it and not the queue limits the transfer" in result.because


@pytest.mark.parametrize(
    ("injection", "found"), [(InjectionMethod.KERNEL, 10.0), (InjectionMethod.TAP, None)]
)
def test_only_the_kernels_datapath_is_judged_by_what_the_paper_says_of_it(
    injection: InjectionMethod, found: float | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = experiments()["slicing/cpu"]
    assert isinstance(document, LiveTransfers)
    figure = document.model_copy(update={"quick": document.quick.model_copy(update={"seconds": 4})})
    monkeypatch.setattr(live_transfers, "best_injection_method", lambda: injection)
    monkeypatch.setattr(live_transfers, "missing_for_dpdk", lambda: "a driver")
    replies = [reply_of(*reports(), idle=CPU, busy=CPU, refused=0)]
    monkeypatch.setattr(live_transfers, "run_isolated", lambda _carry, requests: replies * len(requests))
    outcome, _ = live_transfers.compute(
        figure, Options(mode="live", seed=1, out=tmp_path, quick=True), NoProgress()
    )
    assert outcome.findings.get("kernel_datapath_cpu_percent") == found
    assert [note.text for note in outcome.notes] == [injection.remark]
    (claim,) = [claim for claim in judge(figure, findings=outcome.findings) if "below" in claim.paper]
    assert claim.holds is (None if found is None else False)


def test_rates_and_controls_are_named_once() -> None:
    document = experiments()["slicing/iperf3"]
    plain = document.model_dump(by_alias=True)
    with pytest.raises(ValidationError, match="do not rise"):
        LiveTransfers.model_validate({**plain, "queue_rates_mbps": [20, 10]})
    with pytest.raises(ValidationError, match="named twice"):
        LiveTransfers.model_validate({**plain, "congestion_controls": ["reno", "reno"]})


@pytest.mark.parametrize("kind", ["htb", "pfifo"])
def test_a_missing_discipline_is_one_line_and_nothing_stays(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = []

    def run(arguments: list[str], *, what: str, prefix: object = ()) -> str:
        if arguments[:3] == ["tc", "qdisc", "replace"] and kind in arguments:
            raise RunError(f"{what}: 'tc' failed: Error: Specified qdisc kind is unknown.")
        return ""

    def remove(command: list[str], **_options: object) -> None:
        deleted.append(command[1:])

    for module in (htb_port, shaping):
        monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr("subprocess.run", remove)
    monkeypatch.setattr(htb_port, "require", lambda program: program)
    port = load_slices("iperf3")
    assert isinstance(port, HtbPort)
    with pytest.raises(RunError) as refused:
        htb_port.slice_port(port)
    assert f"no queueing discipline '{kind}' (module sch_{kind})" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert deleted == [["qdisc", "del", "dev", "s1-port2", "root"]]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"root_rate_bps": 50_000_000}, "may send 100000000 bit/s, its port only 50000000"),
        ({"root_rate_bps": 2_000_000_000}, "is above the link's"),
    ],
)
def test_a_queue_above_its_parent_is_refused_before_anything_is_built(
    changed: dict[str, int], says: str
) -> None:
    plain = load_slices("iperf3").model_dump()
    with pytest.raises(ValidationError, match=says):
        HtbPort.model_validate({**plain, **changed})


def test_rates_that_do_not_add_up_are_refused() -> None:
    plain = load_slices("two").model_dump()
    plain["root_rate_bps"] = 510_000_000
    with pytest.raises(ValidationError, match="assured 520000000 bit/s together, their port has 510000000"):
        HtbPort.model_validate(plain)
