"""Control traffic during a run of the simulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import switch_emulator

from loko.control.messages import echo_request, session_segments
from loko.document import LABS
from loko.topology.lab import load_lab
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import SIMPLE
from loko_testbed.simulation.virtual import VirtualRunner

FIGURES = experiments()


def network() -> switch_emulator.Network:
    built = switch_emulator.Network(seed=1)
    built.add_board("s1", config={"ofchecks": False})
    return built


def test_without_a_session_nothing_can_be_planned() -> None:
    with pytest.raises(ValueError, match=re.escape("open it with control() first")):
        network().plan_control("s1", [(0, echo_request(1))])


def test_an_unknown_board_is_named() -> None:
    with pytest.raises(ValueError, match="no board named"):
        network().plan_control("s9", [])


def test_instants_rise() -> None:
    built = network()
    built.control("s1", session_segments([]))
    built.plan_control("s1", [(5, echo_request(1)), (5, echo_request(2))])
    with pytest.raises(ValueError, match="5 or later"):
        built.plan_control("s1", [(4, echo_request(3))])


def test_after_the_run_it_is_too_late() -> None:
    built = network()
    built.control("s1", session_segments([]))
    built.run(duration_ns=1_000_000)
    with pytest.raises(ValueError, match="before the run"):
        built.plan_control("s1", [(0, echo_request(1))])


def largest_delay_ns(lab_path: Path | str, echoes_per_s: float) -> int:
    sweep = FIGURES["loko/fig19a"]
    assert isinstance(sweep, Sweep)
    setting = prepare(sweep)
    with VirtualRunner(load_lab(lab_path), setting.admitted(), entries=17) as runner:
        records = runner.run(traffic(setting, 0, SIMPLE), seconds=0.5, seed=4, echoes_per_s=echoes_per_s)
    assert (records.received_ns != LOST).all()
    return int(np.max(records.received_ns - records.sent_ns))


@pytest.mark.parametrize("control", ["session", "network"])
def test_frames_wait_for_the_controllers_messages(tmp_path: Path, control: str) -> None:
    text = (LABS / "two-switch" / "lab.yml").read_text(encoding="utf-8")
    path = tmp_path / "lab.yml"
    path.write_text(text.replace("control: session", f"control: {control}"), encoding="utf-8")
    assert largest_delay_ns(path, 200) > largest_delay_ns(path, 0)


def test_what_the_controller_sends_is_the_figures() -> None:
    sweep = FIGURES["loko/fig19b"]
    assert isinstance(sweep, Sweep)
    assert [sweep.echoes_per_s(x) for x in (0, 450)] == [0, 450]
    assert sweep.multipliers(450) == (0.95, 1)
    other = FIGURES["loko/fig18a"]
    assert isinstance(other, Sweep)
    assert other.echoes_per_s(1.0) == 0


def test_figure_19b_reserves_as_equation_8_says() -> None:
    """Recomputed from equation 8 with 66 bytes per message: 5.7265 Mbit/s and 335.2 bytes."""
    paper, measured = (FIGURES[f"loko/{name}"] for name in ("fig19b", "fig19bmeasured"))
    assert isinstance(paper, Sweep)
    assert isinstance(measured, Sweep)
    second = prepare(paper).shares.second
    assert second.rate_bps / 1e6 == pytest.approx(5.7265, abs=2e-4)
    assert second.burst_bytes == pytest.approx(335.19, abs=0.05)
    charged = prepare(measured).shares.second
    assert 306 <= charged.burst_bytes < second.burst_bytes
    assert charged.rate_bps < second.rate_bps
