"""A service with several traffic classes: requests, entries, the store, second paths and wrong options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cabled_service import CabledService, S
from triangle import triangle

from loko.admission import Refusal
from loko.admission.protection import Protection
from loko.control.entries import Enqueue, path_entries
from loko.document import InputError
from loko.service.admitter import SchemeAdmitter
from loko.service.migration import MigrationResult, migration
from loko.service.outcome import Conflict, DryRun, FlowState, ReservedPaths, StoredFlow
from loko.service.promises import Grounds
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.store_document import StoredFlowDocument, StoreDocument, flow_row
from loko.service.views import flow_values, would_values
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, load_lab
from loko_testbed.cli.serve import _AdmissionOptions, _by_admission, _Granted

CONTROL = Flow("control", "H1", "H3", 1, 6000, 1e5, 306.0, 306)
VIDEO = Flow("video", "H2", "H3", 2, 6000, 1e6, 612.0, 306, 2)


def granted(lab: Lab, **options: object) -> _Granted:
    return _by_admission(
        lab, _AdmissionOptions(**dict.fromkeys(_AdmissionOptions._fields) | options), OpenFlow.V1_0
    )


def admitter_of(lab: Lab, **options: object) -> SchemeAdmitter:
    admitter = granted(lab, **options).admitter
    assert isinstance(admitter, SchemeAdmitter)
    return admitter


def stored_again(stored: StoredFlow) -> StoredFlow:
    """Return a flow as the store has it after a restart."""
    number, _, state, details = flow_row(stored)
    assert isinstance(details, str)
    return StoredFlowDocument.model_validate({"number": number, "state": state, **json.loads(details)}).stored


@pytest.mark.parametrize("chips", [3, 2])
def test_a_stored_flow_keeps_its_class_its_queue_and_its_promise(chips: int, tmp_path: Path) -> None:
    lab = triangle(tmp_path, chips=chips)
    admitter = admitter_of(lab, classes=2)
    answers = [admitter.decision(flow)() for flow in (CONTROL, VIDEO)]
    again = admitter_of(lab, classes=2)
    for number, answer in enumerate(answers, 1):
        assert not isinstance(answer, Refusal)
        stored = StoredFlow(number=number, flow=answer.flow, path=answer.path, state=FlowState.INSTALLED)
        restored = again.restore_flow(stored_again(stored))
        assert not isinstance(restored, Refusal)
        assert (restored.flow, restored.guarantee_ns) == (answer.flow, answer.guarantee_ns)
        for visit, entry in path_entries(lab, restored):
            if visit.switch != f"s{chips + 1}":
                assert entry.actions == (Enqueue(entry.output_port, 8 - answer.flow.traffic_class),)


def test_a_flow_is_not_the_same_in_another_class(tmp_path: Path) -> None:
    service = CabledService(triangle(tmp_path, chips=3), classes=2)
    service.run(S)
    manager, admitter = service.manager, service.admitter
    tried = manager.dry_run(service.now_ns, VIDEO, admitter.decision(VIDEO))
    assert isinstance(tried, DryRun)
    values = would_values(tried)
    assert values["traffic_class"] == 2
    of_class = [share for share in values["switches"][0]["use"] if share["quantity"].endswith("class 2")]
    assert [share["used"] for share in of_class] == [0.0, 0.0]
    assert all(share["would_use"] > 0 for share in of_class)
    service.request(VIDEO)
    assert flow_values(manager, VIDEO.id)["traffic_class"] == 2
    high = VIDEO._replace(traffic_class=1)
    manager.request(service.now_ns, high, admitter.decision(high))
    ((_, outcome),) = manager.effects().answers
    assert isinstance(outcome, Conflict)


def test_second_paths_and_copies_are_in_the_class_of_their_flow(tmp_path: Path) -> None:
    lab = triangle(tmp_path, chips=3)
    admitter = admitter_of(lab, classes=2, survive=("cables=1",))
    assert isinstance(admitter, ProtectedAdmitter)
    for flow, protection in (
        (VIDEO, Protection.DUPLICATE),
        (VIDEO._replace(id="moves", udp_source=3), Protection.BACKUP),
    ):
        answer = admitter.decision(flow, protection=protection)()
        assert not isinstance(answer, Refusal)
        assert answer.flow.traffic_class == 2
    reserved = admitter.reserved_paths("moves")
    assert isinstance(reserved, ReservedPaths)
    (backup,) = set(reserved.backups.values())
    moved = admitter.grant_second_path("moves", VIDEO._replace(id="moved", udp_source=9), backup)
    assert not isinstance(moved, Refusal)
    assert [admitted.flow.traffic_class for admitted in admitter.admitted] == [2, 2, 2, 2]
    servers = {server for admitted in admitter.admitted for server in admitter.servers(admitted)[1:]}
    assert servers
    assert all(server.endswith(" class 2") for server in servers)


def test_a_migration_to_fewer_classes_says_which_flows_are_lost(tmp_path: Path) -> None:
    lab = triangle(tmp_path, chips=3)
    answers = [admitter_of(lab, classes=2).decision(flow)() for flow in (CONTROL, VIDEO)]
    flows = [
        StoredFlow(number=number, flow=answer.flow, path=answer.path, state=FlowState.INSTALLED)
        for number, answer in enumerate(answers, 1)
        if not isinstance(answer, Refusal)
    ]
    document = {
        **{"version": 2, "circumstances": {}, "last_number": 2, "residual_backlogs": {}, "notes": []},
        "flows": [
            {"number": row[0], "state": row[2], **json.loads(str(row[3]))} for row in map(flow_row, flows)
        ],
    }
    held = StoreDocument.model_validate(document)
    found = migration(held, admitter_of(lab), Grounds.of(lab, ()), {}, now_ms=0)
    assert [flow.result for flow in found.flows] == [MigrationResult.KEPT, MigrationResult.LOST]
    assert "traffic_class 2: flows here have class 1 alone" in found.flows[1].text


def test_a_refusal_names_the_class(tmp_path: Path) -> None:
    lab = triangle(tmp_path, chips=3)
    admitter = admitter_of(lab, classes=2, class_target_ms=["2=0.05"])
    burst = CONTROL._replace(burst_bytes=306.0 * 20, traffic_class=2)
    assert not isinstance(admitter.decision(burst)(), Refusal)
    refusal = admitter.decision(VIDEO._replace(burst_bytes=306.0 * 20))()
    assert isinstance(refusal, Refusal)
    assert (refusal.switch, refusal.quantity) == ("s3", "delay of port 1 class 2")
    with pytest.raises(InputError, match="traffic_class 3: flows here have class 1 to 2; take one"):
        admitter.decision(VIDEO._replace(traffic_class=3))()


def test_targets_of_classes_are_promised_and_stored_flows_need_the_same(tmp_path: Path) -> None:
    lab = triangle(tmp_path, chips=3)
    served = granted(lab, target_ms=0.2, class_target_ms=["2=3"])
    assert (served.options["classes"], served.options["class-target-ms"]) == ("2", "2=3")
    assert isinstance(served.admitter, SchemeAdmitter)
    high, low = (served.admitter.decision(flow)() for flow in (CONTROL, VIDEO))
    assert not isinstance(high, Refusal)
    assert not isinstance(low, Refusal)
    assert 0.2e6 * len(high.path) < high.guarantee_ns < 0.25e6 * len(high.path)
    assert 3e6 * len(low.path) < low.guarantee_ns < 3.1e6 * len(low.path)
    assert not {"classes", "class-target-ms"} & granted(lab).options.keys()
    words = [
        granted(lab, class_target_ms=[text]).options["class-target-ms"]
        for text in ("2=3.333333", "2=3.333334", "2=123456.7", "2=123456.8")
    ]
    assert words == ["2=3.333333", "2=3.333334", "2=123456.7", "2=123456.8"]


@pytest.mark.parametrize("chips", [3, 2])
def test_a_switch_states_a_bound_for_flows_of_every_class(chips: int, tmp_path: Path) -> None:
    admitter = admitter_of(triangle(tmp_path, chips=chips), target_ms=5, class_target_ms=["2=20", "3=7"])
    assert admitter.usage("s1").delay_ns >= 20e6
    for traffic_class in (1, 2, 3):
        sent = VIDEO._replace(id=f"c{traffic_class}", udp_source=traffic_class, traffic_class=traffic_class)
        granted_flow = admitter.decision(sent)()
        assert not isinstance(granted_flow, Refusal)
        for hop, delay_ns in list(zip(granted_flow.path, granted_flow.delays_ns, strict=True))[1:]:
            assert delay_ns <= admitter.usage(hop.switch).delay_ns


@pytest.mark.parametrize(
    ("lab", "options", "error"),
    [
        (
            "two-switch",
            {"classes": 2},
            "2 traffic classes: --scheme loko knows one class only; leave it out, or replace s1",
        ),
        (
            "two-switch",
            {"class_target_ms": ["1=3"]},
            "--class-target-ms: --scheme loko knows one class only; leave it out, or replace s1",
        ),
        (
            "chip-ring",
            {"classes": 2},
            "s1: dell-s3048-on: .* so lower classes have no bound; leave --classes",
        ),
        (
            "chip-ring",
            {"scheme": "silo", "baseline": True, "classes": 2},
            "--scheme silo knows one class only",
        ),
        ("chip-ring", {"class_target_ms": ["2"]}, "--class-target-ms 2: is no class with a target"),
        ("chip-ring", {"class_target_ms": ["2=1000000"]}, "2=1000000: is no class with a target below"),
        (
            "chip-ring",
            {"target_ms": 3, "class_target_ms": ["1=5"]},
            "--class-target-ms 1=…: --target-ms says the target of class 1; leave one out",
        ),
        ("chip-ring", {"class_target_ms": ["2=1", "2=3"]}, "--class-target-ms 2=3: names a class again"),
        ("chip-ring", {"class_target_ms": ["3=1"], "classes": 2}, "there is no such class; give --classes 3"),
    ],
)
def test_wrong_options_are_told_in_a_line(lab: str, options: dict[str, object], error: str) -> None:
    with pytest.raises(InputError, match=error) as refused:
        granted(load_lab(lab), **options)
    assert len(refused.value.lines) == 1


def test_a_service_of_one_class_takes_no_other(tmp_path: Path) -> None:
    admitter = admitter_of(triangle(tmp_path, chips=3))
    with pytest.raises(InputError, match="traffic_class 2: flows here have class 1 alone; take one"):
        admitter.decision(VIDEO)()
