"""`loko serve --live`: flows in the tables of boards on real interfaces, over real OpenFlow connections."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import preloaded
import pytest
from live_harness import Machine, needs_namespaces, wait_until
from private_machine import private_machine
from served_lab import ServedLab, flow, made, slotted, wait_for

from loko.document import LABS
from loko.switch_model.mix import load_mix

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]


MIX = str(LABS / "two-switch" / "mix.yml")


def loko(*words: str) -> None:
    done = preloaded.loko(*words)
    assert done.returncode == 0, done.stderr


def planned(*words: str) -> dict[str, float]:
    """Run a command that plans flows; return the guarantees of the accepted ones."""
    done = preloaded.loko(*words)
    return {flow["flow"]: flow["guarantee_ns"] for flow in json.loads(done.stdout)["accepted"]}


@pytest.fixture(scope="module")
def _lab() -> Iterator[None]:
    """A lab that runs without its own controller, on a private machine."""
    with private_machine():
        before = Machine.now()
        loko("lab", "up", "two-switch", "--no-controller", "--relaxed")
        try:
            yield
        finally:
            loko("lab", "down", "two-switch")
        wait_until(lambda: Machine.now() == before, "nothing to be left")


@contextmanager
def served(folder: Path, *options: str) -> Iterator[ServedLab]:
    """Serve the lab; at the end, release all flows and stop the service."""
    with ServedLab(folder, "--live", *options, has_boards=False) as lab:
        assert [switch["foreign_entries"] for switch in lab.switches().values()] == [[], []]
        yield lab
        for flow in lab.flows():
            assert lab.client.delete(f"/v1/flows/{flow['id']}").status_code == 204
        assert lab.end() == 0


@pytest.mark.usefixtures("_lab")
def test_live_lab_is_served_and_restored_after_a_kill(tmp_path: Path) -> None:
    with served(tmp_path) as lab:
        assert lab.post(1).status_code == 201
        assert lab.post(2).status_code == 201
        assert lab.client.delete("/v1/flows/f1").status_code == 204
        lab.kill()
        lab.start()
        lab.wait_healthy()
        assert [flow["id"] for flow in lab.flows()] == ["f2"]
        assert lab.switches()["s2"]["complete"]


@pytest.mark.usefixtures("_lab")
def test_live_flows_are_measured_at_the_hosts_also_if_they_share_udp_ports(tmp_path: Path) -> None:
    """At the end two flows leave H1 from one UDP port, and a third arrives at it."""
    with served(tmp_path, "--traffic") as lab:
        assert lab.client.get("/v1/service").json()["measures"] == "the hosts' interfaces"
        assert lab.delays() == {}
        assert lab.post(1, rate_bps=100_000, burst_bytes=612).status_code == 201
        assert lab.post(2, source="H2", rate_bps=100_000).status_code == 201
        lab.wait_received({"f1", "f2"}, 50)
        measured = lab.delays()
        for delays in measured.values():  # the lengths of the delays depend on this machine
            assert 0 < delays["min_ns"] <= delays["p50_ns"] <= delays["p99_ns"] <= delays["max_ns"]
            assert delays["received"] + delays["lost"] <= delays["sent"]
        assert lab.client.delete("/v1/flows/f1").status_code == 204
        wait_for(lambda: set(lab.delays()) == {"f2"}, "the flow to be forgotten")
        assert lab.client.delete("/v1/flows/f2").status_code == 204
        for number, (source, destination, udp_destination) in enumerate(
            [("H1", "H3", 6000), ("H1", "H4", 6000), ("H3", "H1", 5000)], start=3
        ):
            ends = {"source": source, "destination": destination}
            ports = {"udp_source": 5000, "udp_destination": udp_destination}
            assert lab.post(number, **ends, **ports, rate_bps=100_000).status_code == 201
        lab.wait_received({"f3", "f4", "f5"}, 20)
        assert "measurement" not in lab.log()


@pytest.mark.usefixtures("_lab")
def test_live_hosts_send_in_their_slots(tmp_path: Path) -> None:
    """That includes a flow that gets its slot later; a released flow stops."""
    with served(tmp_path, "--traffic", "--schedule", str(made(tmp_path))) as lab:
        assert lab.client.post("/v1/slots", json=slotted(3)).status_code == 201
        lab.wait_received({"f1", "f2", "f3"}, 20)
        assert lab.client.delete("/v1/flows/f1").status_code == 204
        wait_for(lambda: set(lab.delays()) == {"f2", "f3"}, "the flow to be forgotten")
        before = {name: delays["received"] for name, delays in lab.delays().items()}
        wait_for(
            lambda: all(delays["received"] > before[n] + 5 for n, delays in lab.delays().items()),
            "the others",
        )


@pytest.mark.usefixtures("_lab")
def test_live_lab_whose_switches_are_split_for_a_mix_gives_what_the_plan_says(tmp_path: Path) -> None:
    expected = load_mix(MIX).kinds[0]
    asked = [
        flow(number, **expected.model_dump(include={"rate_bps", "burst_bytes", "frame_bytes"}))
        for number in range(1, 6)
    ]
    (tmp_path / "flows.json").write_text(json.dumps(asked))
    words = ["plan", "two-switch", str(tmp_path / "flows.json"), "--changes-per-s", "20", "--json"]
    fixed, split = (planned(*words, *more) for more in ([], ["--allocation", "optimised", "--mix", MIX]))
    assert split
    assert max(split.values()) < min(fixed.values()), "the mix has flows in a hurry"
    with served(tmp_path, "--traffic", "--allocation", "optimised", "--mix", MIX) as lab:
        assert lab.client.get("/v1/service").json()["options"]["allocation"].startswith("optimised")
        for requested in asked:
            lab.client.post("/v1/flows", json=requested)
        assert {flow["id"]: flow["guarantee_ns"] for flow in lab.flows()} == split
        lab.wait_received(set(split), 20)


def refusal(folder: Path, lab: str) -> str:
    """Return the line with which the service refuses a live lab."""
    done = preloaded.loko("serve", lab, "--live", "--store", folder / "s")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --live: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_lab_that_is_not_up_is_one_line(tmp_path: Path) -> None:
    said = refusal(tmp_path, "ring")
    assert "lab ring is not up; start it without a controller: sudo loko lab up ring --no-controller" in said


@pytest.mark.parametrize(
    ("how", "whose"),
    [
        (["--controller", "tcp:127.0.0.1:6699"], "tcp:127.0.0.1:6699 of this machine"),
        ([], "Loko's own"),
    ],
)
def test_lab_with_another_controller_is_one_line_whose_advice_helps(tmp_path: Path, how, whose) -> None:
    """Without this check, the service would wait for its switches silently."""
    with private_machine():
        before = Machine.now()
        loko("lab", "up", "two-switch", "--relaxed", *how)
        try:
            said = refusal(tmp_path, "two-switch")
            assert f"the switches of lab two-switch have another controller, {whose}; end the lab" in said
            down, up = re.findall(r"sudo loko (lab [a-z- ]+)", said)
            loko(*down.split())
            loko(*up.split(), "--relaxed")
            with served(tmp_path) as lab:
                assert lab.post(1).status_code == 201
        finally:
            loko("lab", "down", "two-switch")
        wait_until(lambda: Machine.now() == before, "nothing to be left")
