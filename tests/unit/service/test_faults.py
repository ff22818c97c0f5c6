"""Faults in an emulated lab: which places they name, and that a restarted emulation is told them again."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from loko.document import InputError
from loko.service.faults import Fault, FaultKind, cable_named
from loko.service.run import ServiceLoop
from loko.service.sidecar import Sidecar
from loko.topology.lab import load_lab

LAB = load_lab("two-switch")
CABLE = "s1:3-s2:3"
RECORDS = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.readline())"
"""A program that writes the first line that it is told into a file, and ends."""


def test_a_cable_is_named_by_its_ends_in_either_order() -> None:
    assert cable_named(LAB, CABLE) is cable_named(LAB, "s2:3-s1:3")
    with pytest.raises(InputError, match="has no cable 's1:3'; name both ends, such as H1:1-s1:1"):
        cable_named(LAB, "s1:3")


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (Fault(FaultKind.PULL, "s1:1-s2:3"), "has no cable"),
        (Fault(FaultKind.REBOOT, "H1"), "has no switch 'H1'; its switches: s1, s2"),
    ],
)
def test_a_fault_at_an_unknown_place_is_refused(fault: Fault, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        fault.refuse_unknown_place(LAB)
    Fault(FaultKind.PLUG, CABLE).refuse_unknown_place(LAB)
    Fault(FaultKind.REBOOT, "s2").refuse_unknown_place(LAB)


def test_a_program_that_is_started_again_is_told_which_cables_are_out(tmp_path: Path) -> None:
    file = tmp_path / "told"

    async def told(lines: int) -> list[dict[str, Any]]:
        while not file.exists() or file.read_text().count("\n") < lines:
            await asyncio.sleep(0.02)
        return [json.loads(line) for line in file.read_text().splitlines()]

    async def scene() -> None:
        sidecar = Sidecar(cast("ServiceLoop", None), measures=False)
        await sidecar.start([sys.executable, "-c", RECORDS, str(file)])
        fault = Fault(FaultKind.PULL, CABLE)
        sidecar.cause(fault)
        first, again = (await told(2))[:2]
        assert Fault.of(first["fault"]) == Fault.of(again["fault"]) == fault
        sidecar.cause(Fault(FaultKind.PLUG, CABLE))
        assert sidecar.pulled == set()
        await sidecar.end()

    asyncio.run(asyncio.wait_for(scene(), 60))
