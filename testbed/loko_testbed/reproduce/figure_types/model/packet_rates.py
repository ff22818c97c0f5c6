"""Packets per second that a switch's ports may receive, and that it forwards at worst (section 2.3)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko.document import InputError
from loko.switch_model.device import Profile, load_device
from loko.switch_model.linux_switch import LinuxSwitch
from loko.switch_model.scenario import UNKNOWN, Scenario
from loko.switch_model.service_curve import service_curve
from loko.units import NS_PER_S
from loko_testbed.reproduce.figure_types.model.document import PacketRates, RatesOfSwitch
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult

_PS_PER_NS: Final = 1_000


def compute(figure: PacketRates) -> tuple[Outcome, pa.Table]:
    """Compute both rates of every switch. Raises `InputError` if a profile does not tell them."""
    findings: dict[str, float] = {}
    rows: list[list[str | float]] = []
    for case in figure.switches:
        device = load_device(case.profile)
        name = case.profile.replace("-", "_")
        received_pps = received(case, device.ports.link_rate_bps.value)
        findings[f"received_{name}_mpps"] = received_pps / 1e6
        row: list[str | float] = [device.title, case.ports, case.frame_bytes, round(received_pps / 1e6, 3)]
        if case.forwards_bytes is None:
            rows.append([*row, "line rate", "line rate"])
            continue
        forwarded_pps = forwarded(case.profile, case.forwards_bytes)
        forwarded_mbps = forwarded_pps * case.forwards_bytes * 8 / 1e6
        findings[f"forwarded_{name}_pps"] = forwarded_pps
        findings[f"forwarded_{name}_kpps"] = forwarded_pps / 1e3
        findings[f"forwarded_{name}_mbps"] = forwarded_mbps
        rows.append([*row, f"{forwarded_pps:.0f}", f"{forwarded_mbps:.3g} at {case.forwards_bytes} bytes"])
    columns = ["switch", "ports", "bytes", "may receive [million packets/s]"]
    columns += ["forwards at worst [packets/s]", "that is [Mbit/s]"]
    outcome = Outcome(
        chart=None,
        findings=findings,
        x=AxisLabel(name="switch", unit=""),
        table=TableResult(columns=columns, rows=rows),
    )
    return outcome, pa.table({"finding": list(findings), "value": list(findings.values())})


def received(case: RatesOfSwitch, link_rate_bps: int) -> float:
    """Return the packets per second of all ports, without preamble and gap, as section 2.3 counts them."""
    return case.ports * link_rate_bps / (case.frame_bytes * 8)


def forwarded(profile: str, frame_bytes: int) -> float:
    """Return the packets per second that a CPU forwards at worst.

    Of a board, by its service curve in a scenario of which only the frames are known; of a switch on Linux,
    by the time of its CPU for a frame while it polls without a pause and nothing interrupts it.
    """
    device = load_device(profile)
    if isinstance(device, Profile):
        scenario = Scenario(
            entries=UNKNOWN,
            match=UNKNOWN,
            action=UNKNOWN,
            packet_sizes_bytes=(frame_bytes,),
            priorities=UNKNOWN,
            used_entry=UNKNOWN,
        )
        return service_curve(device, scenario).rate_bps / (frame_bytes * 8)
    if isinstance(device, LinuxSwitch):
        cpu = device.cpu
        frame_ns = (cpu.base_ps.value + cpu.per_byte_ps.value * frame_bytes) / _PS_PER_NS
        return NS_PER_S / (frame_ns + cpu.repoll_ns.value / cpu.poll_budget_frames.value)
    raise InputError(f"device '{profile}': no CPU forwards; leave forwards_bytes out")
