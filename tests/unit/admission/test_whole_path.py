"""Bounds for whole paths of ports: by hand, against whole frames, and in the admission."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from loko.admission import Admitted, Refusal
from loko.admission.planning import plan
from loko.admission.port_queues import whole_paths
from loko.admission.port_queues.whole_paths import WholePathAdmission
from loko.admission.schemes import VARIANTS, admission_of
from loko.document import InputError
from loko.solvers.linear import LinearProgram
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, TotalFlow
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import lab_of
from loko_testbed.cli.main import app, main
from loko_testbed.simulation.worst_case.port_frames import whole_path_trial
from loko_testbed.simulation.worst_case.port_trial import port_trial

FRAME_BYTES = 1518


def tandem(hops: int, *, line_rate_bps: float, latency_ns: float = 0.0, rate_bps: float = 1e6):
    service = RateLatency(rate_bps=1e9, latency_ns=latency_ns)
    server = PortServer(service=service, line_rate_bps=line_rate_bps, frame_bytes=1000)
    network = TotalFlow({str(place): server for place in range(hops)})
    path = [PathStep(str(place)) for place in range(hops)]
    bucket = TokenBucket(rate_bps=rate_bps, burst_bytes=10_000)
    network.add(path, bucket)
    bounds = network.settle(network.servers)
    return whole_path_ns(network, path, [(path, bucket)], bounds), sum(bounds.values())


@pytest.mark.parametrize("hops", [2, 3, 5])
@pytest.mark.parametrize("line_rate_bps", [1e9, math.inf])
@pytest.mark.parametrize("rate_bps", [1e6, 5e8])
def test_a_burst_is_paid_once(hops: int, line_rate_bps: float, rate_bps: float) -> None:
    """Ten frames of 1000 bytes: 80 us at the first port, and a frame's 8 us at each further one."""
    whole_ns, sum_ns = tandem(hops, line_rate_bps=line_rate_bps, rate_bps=rate_bps)
    assert whole_ns == pytest.approx(80_000 + (hops - 1) * 8_000, abs=2)
    assert whole_ns <= sum_ns
    if math.isinf(line_rate_bps):
        assert sum_ns > hops * 80_000
    late_ns, _ = tandem(hops, line_rate_bps=line_rate_bps, rate_bps=rate_bps, latency_ns=5_000)
    assert late_ns == pytest.approx(whole_ns + hops * 5_000, abs=2)


def test_no_frame_of_random_networks_exceeds_the_bound_of_its_path() -> None:
    trials = [trial for seed in range(16) if (trial := whole_path_trial(seed, runs=250)) is not None]
    assert max(trial.worst for trial in trials) <= 1
    # The search comes close to the bounds, and the bounds are below the sums.
    assert max(trial.worst for trial in trials) > 0.98
    assert min(trial.of_sum for trial in trials) < 0.95


def test_the_bound_does_not_depend_on_the_order_of_the_flows() -> None:
    service = RateLatency(rate_bps=1e9, latency_ns=100.0)
    server = PortServer(service=service, line_rate_bps=1e9, frame_bytes=1542)
    rng = Random(1)
    flows = []
    for _ in range(9):
        first = rng.randrange(6)
        path = [PathStep(f"s{(first + hop) % 6}") for hop in range(rng.randint(1, 4))]
        flows.append((path, TokenBucket(rate_bps=rng.uniform(1e6, 8e7), burst_bytes=rng.uniform(84, 5000))))
    found = set()
    for _ in range(4):
        network = TotalFlow({f"s{place}": server for place in range(6)})
        for path, bucket in flows:
            network.add(path, bucket)
        bounds = network.settle(network.servers)
        longest = max((path for path, _ in flows), key=lambda path: (len(path), path))
        found.add(whole_path_ns(network, longest, flows, bounds))
        rng.shuffle(flows)
    assert len(found) == 1


def test_the_bound_of_a_program_needs_no_trust_in_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """x + y <= 4 and x - y <= 1 with 0 <= x, y <= 3: x is at most 2.5; any other prices give more."""
    program = LinearProgram()
    x, y = program.variable(0.0, 3.0), program.variable(0.0, 3.0)
    program.row([(x, 1.0), (y, 1.0)], 4.0)
    program.row([(x, 1.0), (y, -1.0)], 1.0)
    assert program.most(x) == pytest.approx(2.5, abs=1e-6)
    assert program.most(x) >= 2.5
    for prices in ([0.0, 0.0], [0.6, 0.4], [-1.0, 2.0]):
        monkeypatch.setattr("loko.solvers.linear.highspy.Highs.getSolution", lambda _: Priced(prices))  # noqa: B023
        assert program.most(x) >= 2.5
    monkeypatch.setattr("loko.solvers.linear.highspy.Highs.getSolution", lambda _: Priced([]))
    assert math.isinf(program.most(x))


class Priced:
    """The solution of a solver that is wrong."""

    def __init__(self, row_dual: list[float]) -> None:
        self.row_dual = row_dual


# Admission.


def line_of(count: int):
    return lab_of(
        {
            "name": "line",
            "title": "line",
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:02:00:00:00:01:{n:02x}", "profile": "ideal-1g"}
                for n in range(count)
            },
            "hosts": {
                f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in range(count)
            },
            "links": [
                *({"a": f"h{n}", "b": f"s{n}:1"} for n in range(count)),
                *({"a": f"s{n}:2", "b": f"s{n + 1}:3"} for n in range(count - 1)),
            ],
        }
    )


LINE = line_of(9)
FLOWS = [
    Flow(
        f"f{number}", f"h{number % 6}", f"h{number % 6 + 3}", 5000 + number, 6000 + number, 50e6,
        2.0 * FRAME_BYTES, FRAME_BYTES,
    )
    for number in range(36)
]  # fmt: skip
SCENARIO = loko_scenario(entries=60, packet_sizes_bytes=(FRAME_BYTES,))


def admission(deadline_ns: float) -> WholePathAdmission:
    deadlines_ns = {flow.id: deadline_ns for flow in FLOWS}
    return WholePathAdmission(LINE, SCENARIO, target_ns=None, padding=None, deadlines_ns=deadlines_ns)


def fitting(scheme: str, deadline_ns: float, target_ns: float | None = None) -> int:
    deadlines_ns = {flow.id: deadline_ns for flow in FLOWS}
    empty = admission_of(LINE, VARIANTS[scheme], SCENARIO, target_ns=target_ns, deadlines_ns=deadlines_ns)
    planned = plan(LINE, FLOWS, empty, deadlines_ns=deadlines_ns)
    assert all(admitted.guarantee_ns <= deadline_ns for admitted in planned.accepted)
    return len(planned.accepted)


def test_more_fits_than_with_any_target_or_by_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline_ns = 500_000.0
    by_target = [fitting("ports", deadline_ns, target_ns) for target_ns in range(50_000, 160_000, 10_000)]
    by_path = fitting("ports-whole-paths", deadline_ns)
    monkeypatch.setattr(
        whole_paths,
        "whole_path_ns",
        lambda _, path, _flows, bounds: sum(bounds[step.server] for step in path),
    )
    by_sums = fitting("ports-whole-paths", deadline_ns)
    assert max(by_target) < by_sums < by_path


def test_no_later_flow_breaks_a_promise() -> None:
    control = admission(500_000.0)
    refusals = []
    for flow in FLOWS:
        answer = control.check(flow)
        assert answer == control.check(flow)
        if isinstance(answer, Admitted) and answer.guarantee_ns <= 500_000.0:
            assert isinstance(control.request(flow), Admitted)
        elif isinstance(answer, Refusal):
            refusals.append(answer)
        for flow_id, admitted in control.admitted.items():
            assert control.as_bound_now(flow_id).guarantee_ns <= admitted.guarantee_ns == 500_000.0
    assert any(refusal.quantity.startswith("delay of flow 'f") for refusal in refusals)
    for refusal in refusals:
        assert 0 <= refusal.used <= refusal.allowed < refusal.used + refusal.requested


def test_a_promise_never_depends_on_the_target_where_there_is_a_deadline() -> None:
    control = admission(math.inf)
    answer = control.request(FLOWS[0])
    assert isinstance(answer, Admitted)
    assert answer.whole_path_ns is None
    assert answer.guarantee_ns == sum(answer.delays_ns)


def test_flows_stay() -> None:
    control = admission(500_000.0)
    control.request(FLOWS[0])
    with pytest.raises(InputError, match="for flows that stay; to release some, use 'ports'"):
        control.release("f0", now_ns=0)
    control.cancel("f0")
    assert not control.admitted


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_no_packet_of_a_random_set_is_late_on_its_path(seed: int, classes: int) -> None:
    verdict = port_trial(seed, packets=1_500, is_by_path=True, classes=classes).verdict
    assert verdict.packets > 500
    assert not verdict.broken
    assert not verdict.events


# Commands.


def flows_file(folder: Path, *, count: int = 15, last_deadline: str = "0.5 ms") -> str:
    """Return a file of flows over all switches of `chip-ring`, with deadlines of 0.5 ms but for the last."""
    flows = [
        {
            "id": f"f{number}",
            "source": f"H{number % 3 + 1}",
            "destination": f"H{(number + 2) % 3 + 1}",
            "udp_source": 5000 + number,
            "udp_destination": 9,
            "rate": "40 Mbit/s",
            "burst": "3 frames",
            "frame": "1518 bytes",
            "deadline": "0.5 ms" if number < count - 1 else last_deadline,
        }
        for number in range(count)
    ]
    file = folder / "flows.json"
    file.write_text(json.dumps(flows))
    return str(file)


def test_more_fit_as_the_plan_advises_on_the_condition_that_flows_stay(tmp_path: Path) -> None:
    words = ["plan", "chip-ring", flows_file(tmp_path)]
    first = CliRunner().invoke(app, words)
    assert "\n0 of 15 fit\nwith --allocation whole-paths more may fit, if the flows stay\n" in first.output
    more = CliRunner().invoke(app, [*words, "--allocation", "whole-paths"])
    assert "\n12 of 15 fit\n" in more.output
    assert "more may fit" not in more.output
    assert "slower switches" not in more.output
    values = json.loads(CliRunner().invoke(app, [*words, "--allocation", "whole-paths", "--json"]).stdout)
    assert {flow["guarantee_ns"] for flow in values["accepted"]} == {500_000.0}
    assert values["conditions"][-1]["id"] == "flows-stay"
    assert values["margin"] is None


def test_a_flow_fits_with_the_deadline_that_its_refusal_advises(tmp_path: Path) -> None:
    words = ["plan", "chip-ring", "--allocation", "whole-paths"]
    refused = CliRunner().invoke(app, [*words, flows_file(tmp_path, count=6, last_deadline="0.2 ms")])
    assert "\n5 of 6 fit\n" in refused.output
    (advised,) = re.findall(r"would fit: a deadline of at least (.* us)", refused.output)
    fitting = CliRunner().invoke(app, [*words, flows_file(tmp_path, count=6, last_deadline=advised)])
    assert "\n6 of 6 fit\n" in fitting.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["serve", "chip-ring"], "works only for flows that stay; leave it out, or use 'loko plan'"),
        (["plan", "chip-ring", "FLOWS", "--largest"], "nobody knows whether a subset of what fits also fits"),
        (["plan", "two-switch", "FLOWS"], "'whole-paths'"),
    ],
)
def test_commands_that_cannot_use_whole_paths_say_so_in_a_line(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = flows_file(tmp_path) if words[1] == "chip-ring" else "labs/two-switch/flows.yml"
    filled = [file if word == "FLOWS" else word for word in words]
    monkeypatch.setattr("sys.argv", ["loko", *filled, "--allocation", "whole-paths"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert says in line
    assert line.count("\n") == 1
