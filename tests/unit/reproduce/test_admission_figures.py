"""Admission figures: each run depends on its number alone, ceilings hold, and wrong documents are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from loko.admission.packets import frame_server
from loko.document import LABS, InputError
from loko.switch_model.control_traffic import NO_MESSAGES, interference
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import load_lab
from loko_testbed.reproduce.figure_types.admission.batch import batch_of, run_batch
from loko_testbed.reproduce.figure_types.admission.ceilings import LINEAR, NO_JITTER, FractionalCeiling
from loko_testbed.reproduce.figure_types.admission.document import SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment
from loko_testbed.tasks.executor import Executor, each_done

FIG20A = experiments()["loko/fig20a"]
FULL = SchemeSeries("full-rate", "as-printed")


def test_a_cluster_needs_an_address() -> None:
    with pytest.raises(InputError, match="needs --scheduler ADDRESS"):
        list(each_done(str, [1], executor=Executor.DASK))


def test_runs_depend_on_their_number_alone() -> None:
    together = run_batch(batch_of(FIG20A, series=FULL, hops=1, runs=range(0, 4), seed=7))
    apart = run_batch(batch_of(FIG20A, series=FULL, hops=1, runs=range(2, 4), seed=7))
    assert together[2:] == apart
    assert together[0] != together[1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rate_kbps: [750, 1000]", "rate_kbps: [1000, 750]", "give the lower rate"),
        ("schemes: [full-rate]", "buffer_factor: 0\nschemes: [full-rate]", "buffer_factor"),
        ("schemes: [full-rate]", "schemes: [twice]", "scheme 'twice' is unknown"),
        ("runs: 1000", "runs: 0", "runs"),
    ],
)
def test_wrong_documents_are_one_line(tmp_path, old, new, says) -> None:
    path = tmp_path / "fig20a.yml"
    text = (LABS / "ring" / "experiments" / "fig20a.yml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=says) as error:
        load_experiment(path)
    assert "\n" not in str(error.value)


BEYOND = experiments()["loko/fig20beyond"]


@pytest.mark.parametrize("reservation", ["board", "changes-padding"])
@pytest.mark.parametrize("hops", [0, 3])
def test_no_scheme_accepts_more_than_its_ceilings(reservation, hops) -> None:
    """Each scheme accepts no more than the next. Jitter must cost flows, or the ceilings are pointless."""
    accepted = {
        scheme: run_batch(
            batch_of(BEYOND, series=SchemeSeries(scheme, reservation), hops=hops, runs=range(2), seed=1)
        )
        for scheme in ("full-rate", "packet-granular", NO_JITTER, LINEAR)
    }
    for fewer, more in pairwise(accepted.values()):
        assert all(low.accepted <= high.accepted for low, high in zip(fewer, more, strict=True))
    if hops:
        assert accepted["packet-granular"][0].accepted < accepted[NO_JITTER][0].accepted


def test_the_linear_program_is_what_its_limits_say() -> None:
    """Limits of each switch: eight entering flows, 17 entries, and the CPU time that interruptions leave."""
    lab = load_lab("ring")
    program = FractionalCeiling(lab, EVALUATION, RESERVATIONS["board"])

    def flows(count: int, rate_bps: float, hops: int) -> list[Flow]:
        ends = [(f"h{at + 1}a", f"h{(at + hops) % 31 + 1}b") for at in range(31)]
        return [Flow(f"{n}", *ends[n % 31], 1024 + n, 1024, rate_bps, 306.0, 306) for n in range(count)]

    assert program.accepted(flows(400, 1e3, 0)) == pytest.approx(31 * 8)
    assert program.accepted(flows(400, 1e3, 8)) == pytest.approx(31 * 17 / 9)
    left = 1 - interference(load_profile("zodiac-fx"), NO_MESSAGES, 17).share
    service_ns = frame_server(load_profile("zodiac-fx"), EVALUATION).times[306].service_ns
    assert program.accepted(flows(400, 3e6, 0)) == pytest.approx(31 * left / (3e6 / 8e9 / 306 * service_ns))


def test_what_is_not_in_the_paper_cannot_be_as_printed(tmp_path) -> None:
    path = tmp_path / "fig20beyond.yml"
    text = (LABS / "ring" / "experiments" / "fig20beyond.yml").read_text()
    path.write_text(text.replace("reservations: [board,", "reservations: [as-printed,"))
    with pytest.raises(InputError, match="packet-granular is not in the paper"):
        load_experiment(path)


def test_a_former_name_of_a_reservation_is_refused_with_the_present_one(tmp_path: Path) -> None:
    path = tmp_path / "fig20beyond.yml"
    text = (LABS / "ring" / "experiments" / "fig20beyond.yml").read_text()
    path.write_text(text.replace("changes-padding]", "changes-fillers]"))
    with pytest.raises(InputError, match="reservation 'changes-fillers' is called 'changes-padding'"):
        load_experiment(path)
