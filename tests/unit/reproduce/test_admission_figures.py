"""Admission figures are reproducible, on processes and on a cluster, and wrong documents are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from dask_cluster import cluster

from loko.admission.packets import frame_server
from loko.document import LABS, InputError
from loko.switch_model.control_traffic import NO_MESSAGES, interference
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import load_lab
from loko_testbed.reproduce.chart import BoxPanel
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.admission.batch import batch_of, run_batch
from loko_testbed.reproduce.figure_types.admission.ceilings import LINEAR, NO_JITTER, FractionalCeiling
from loko_testbed.reproduce.figure_types.admission.document import SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment, select
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Executor, each_done
from loko_testbed.tasks.progress import ProgressBar

FIG20A = experiments()["loko/fig20a"]
FULL = SchemeSeries("full-rate", "as-printed")


def replay(name: str, out: Path, **options) -> bytes:
    with ProgressBar() as progress:
        (result,) = evaluate(
            select([name], experiments()),
            Options(mode="virtual", seed=1, out=out, quick=True, **options),
            progress,
        )
    assert result.claims
    return (out / f"{result.figure}.parquet").read_bytes()


def test_same_bytes_however_many_processes(tmp_path) -> None:
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
    alone = replay("fig20a", tmp_path / "1", jobs=1, runs=2)
    assert replay("fig20a", tmp_path / "2", jobs=2, runs=2) == alone


def test_same_bytes_on_a_dask_cluster(tmp_path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    here = replay("fig20a", tmp_path / "here", jobs=1, runs=2)
    with cluster(tmp_path, workers=1) as started:
        there = replay(
            "fig20a", tmp_path / "there", executor=Executor.DASK, scheduler=started.address, runs=2
        )
    assert there == here


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


def test_the_picture_shows_the_use_of_each_switch_and_ends_where_no_flow_is_accepted(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True, runs=2)
    with ProgressBar() as progress:
        (result,) = evaluate(select(["fig20a"], experiments()), options, progress)
    rows = pq.read_table(tmp_path / "fig20a.parquet").to_pylist()
    assert {len(row["rate_uses_percent"]) for row in rows} == {31}
    assert result.chart is not None
    whole, bottleneck = result.chart.panels
    assert isinstance(whole, BoxPanel)
    assert isinstance(bottleneck, BoxPanel)
    of_switches = whole.groups[1]
    assert "each of the 31 switches" in of_switches.label
    for place, box in zip(whole.places, of_switches.boxes, strict=True):
        uses = [use for row in rows if row["hops"] == int(place) for use in row["rate_uses_percent"]]
        assert box is not None
        assert (box.min, box.max) == (min(uses), max(uses))
        assert box.mean == pytest.approx(sum(uses) / len(uses))
    largest = result.findings["largest_rate_use_percent"]
    assert largest == max(box.max for box in of_switches.boxes if box is not None)
    assert [reference.value for reference in whole.references] == [49]
    with_flows = {row["hops"] for row in rows if row["accepted"]}
    assert whole.places == bottleneck.places == [str(hops) for hops in sorted(with_flows)]
    assert 30 not in with_flows
    assert "30 hops" in result.chart.caption
