"""The interface for other programs: `from loko import …`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loko
from loko_testbed.cli.main import app

FLOWS = loko.load_requests(loko.load_lab("two-switch").path.parent / "flows.yml")
MANY = [FLOWS[0].flow._replace(id=f"f{number}", udp_source=5000 + number) for number in range(9)]


def answer(*command: str) -> dict[str, Any]:
    """Return the command's JSON output."""
    told: dict[str, Any] = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    return told


def test_every_name_is_there_and_none_is_loaded_before_it_is_asked_for() -> None:
    assert set(loko.__all__) <= set(dir(loko))
    assert all(getattr(loko, name) is not None for name in loko.__all__)
    script = "import sys, loko; print([name for name in sys.modules if name.startswith('loko.')])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'loko' has no attribute 'plam'"):
        loko.plam  # noqa: B018


def test_the_order_of_imports_does_not_change_what_a_name_means() -> None:
    script = "import loko.admission.planning, loko.notebook_api; from loko import plan; print(callable(plan))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "True\n"


@pytest.mark.parametrize("scheme", ["loko", "packets", "silo"])
def test_plan_promises_what_the_command_promises(scheme: str, tmp_path: Path) -> None:
    file = tmp_path / "flows.json"
    file.write_text(json.dumps([flow._asdict() for flow in MANY]))
    told = answer("plan", "two-switch", str(file), "--scheme", scheme)
    planned = loko.plan("two-switch", MANY, scheme=scheme)
    assert {accepted.flow.id: accepted.guarantee_ns for accepted in planned.accepted} == {
        accepted["flow"]: accepted["guarantee_ns"] for accepted in told["accepted"]
    }
    assert told["accepted"]
    assert loko.plan(planned.lab, file, scheme=scheme).fit == planned.fit


def test_plan_keeps_deadlines() -> None:
    (request, *_) = FLOWS
    late = loko.Request(request.flow, deadline_ns=1.0)
    (refusal,) = loko.plan("two-switch", [late]).refused
    assert refusal.flow.id == request.flow.id


def test_model_models_what_the_command_models() -> None:
    told = answer("model", "zodiac-fx", "--packet-size", "306", "--entries", "17", "--match", "five-tuple")
    service = loko.model("zodiac-fx", packet_sizes_bytes=[306], entries=17, match="five-tuple")
    assert (service.rate_bps, service.curve.latency_ns) == (told["rate_bps"], told["latency_ns"])


def test_what_programs_print_is_short() -> None:
    lab = loko.load_lab("ring")
    switch = next(iter(lab.switches.values()))
    planned = loko.plan("two-switch", FLOWS)
    service = loko.model("zodiac-fx")
    for shown in (lab, switch.profile, planned, service):
        assert len(repr(shown)) < 100, repr(shown)[:200]
        assert str(shown) == repr(shown)
    assert len(repr(switch)) < 500
    assert repr(planned) == "Plan('two-switch', fifth-rate: 4 of 4 fit)"
    assert repr(switch.profile) == "Profile('zodiac-fx')"
