"""A start that cannot keep its promises says so, and a migration shows which break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
import served_boards
from served_boards import CONDITIONS, FULL, LAB, OPTIONS, ServedBoards, flow
from stores import ALL, unversioned
from typer.testing import CliRunner

from loko.document import InputError
from loko.service.breaks import ViolationCause
from loko.service.migration import Migration, MigrationResult, migration
from loko.service.outcome import Disposition, FlowState, Granted, NotStored, Refused, Released
from loko.service.promises import Grounds, digest
from loko.service.store_file import reading
from loko.service.views import flow_values, health_values
from loko.switch_model.device import Profile
from loko.topology.lab import Lab, lab_of
from loko_testbed.cli.main import app

MS = 1_000_000


def slower(lab: Lab, *, names: tuple[str, ...] = ("s1", "s2"), percent: int = 40) -> Lab:
    """Return a lab in which some switches need more time for each frame."""
    switches = dict(lab.switches)
    for name in names:
        profile = switches[name].profile
        assert isinstance(profile, Profile)
        base = profile.cpu.base_ps
        base = base.model_copy(update={"value": base.value * (100 + percent) // 100, "range": None})
        cpu = profile.cpu.model_copy(update={"base_ps": base})
        switches[name] = replace(switches[name], profile=profile.model_copy(update={"cpu": cpu}))
    return replace(lab, switches=MappingProxyType(switches))


def without(lab: Lab, cable: str) -> Lab:
    """Return a lab without one of its cables."""
    links = tuple(link for link in lab.links if f"{link.a}-{link.b}" != cable)
    assert len(links) == len(lab.links) - 1
    return replace(lab, links=links)


def granted(path: Path, deadlines_ms: Mapping[int, float | None], lab: Lab = LAB) -> ServedBoards:
    """Return boards whose service has granted flows, by number with their deadlines, and was killed then."""
    served = ServedBoards(path, lab=lab)
    served.settle()
    for number, deadline_ms in deadlines_ms.items():
        deadline_ns = None if deadline_ms is None else deadline_ms * MS
        assert isinstance(served.request(flow(number), deadline_ns=deadline_ns), Granted)
    served.kill()
    return served


def migrated(served: ServedBoards, lab: Lab, **named: str) -> Migration:
    """Return what becomes of the flows in another lab, which is the one to serve from now on."""
    served.lab = lab
    with reading(served.path) as (_, held):
        pass
    assert served.store is not None
    served.grant_anew(served.store)
    circumstances = {"lab": lab.name, **OPTIONS, **named}
    grounds = Grounds.of(lab, served_boards.CONDITIONS)
    return migration(held, served.admitter, grounds, circumstances, now_ms=1_700_000_000_000)


def test_a_flow_is_stored_with_what_its_promise_rests_on(tmp_path: Path) -> None:
    served = granted(tmp_path / "s", {1: 10.1, 2: None})
    with reading(served.path) as (_, held):
        first, second = (stored.stored.promise for stored in held.flows)
    assert first is not None
    assert second is not None
    promise = served.manager.flows["f1"]
    assert (first.guarantee_ns, first.deadline_ns) == (promise.grant.guarantee_ns, 10.1 * MS)
    assert (second.guarantee_ns, second.deadline_ns) == (first.guarantee_ns, None)
    known = digest(LAB.switches["s1"].profile)
    assert first.profiles == {"s1": known, "s2": known}
    assert first.conditions == CONDITIONS
    assert digest(slower(LAB, percent=1).switches["s1"].profile) != known


def test_a_start_with_a_slower_profile_says_which_promises_break_and_why(tmp_path: Path) -> None:
    """The flow was served on, healthy, with a guarantee beyond its deadline."""
    served = granted(tmp_path / "s", {1: 10.1, 2: None})
    before = served.path.read_bytes()
    served.lab = slower(LAB, names=("s2",))
    with pytest.raises(InputError) as refused:
        served.start()
    first, second = refused.value.lines
    assert first == (
        "stored flow 'f1' gets 10.314 ms in place of the promised 10.007 ms (deadline 10.100 ms): the profile"
        " of s2 has changed; serve as before, or add --migrate to see what would become of it"
    )
    assert second.startswith(
        "stored flow 'f2' gets 10.314 ms in place of the promised 10.007 ms: the profile"
    )
    served.kill()
    assert served.path.read_bytes() == before
    served.lab = LAB
    served.start()
    served.settle()
    assert served.tables() == served.promised()


def test_a_start_with_a_faster_profile_goes_on_and_remembers_it(tmp_path: Path) -> None:
    served = granted(tmp_path / "s", {1: 10.1})
    served.lab = slower(LAB, percent=-10)
    served.start()
    served.settle()
    served.kill()
    with reading(served.path) as (_, held):
        [stored] = held.flows
    assert stored.promise is not None
    assert stored.promise.profiles == Grounds.of(served.lab, ()).profiles
    promised_ns = stored.promise.guarantee_ns
    served.lab = LAB
    served.start()  # the promise is what the requester was told, not the better one in between
    assert served.manager.flows["f1"].grant.guarantee_ns == promised_ns


def test_a_start_with_further_conditions_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = granted(tmp_path / "s", {1: 10.1})
    monkeypatch.setattr("served_boards.CONDITIONS", (*CONDITIONS, "no-pause"))
    served.log = []
    found = migrated(served, LAB)
    assert found.conditions == ("no-pause",)
    assert found.lines()[0] == "further conditions: no-pause"
    for told in (1, 0):
        served.start()
        texts = [event.text for event in served.log if "former promises rest on" in event.text]
        assert len(texts) == told
        served.kill()
        served.log = []


def test_what_an_unversioned_store_did_not_say_is_what_is_granted_first(tmp_path: Path) -> None:
    unversioned(tmp_path / "s", named=OPTIONS, flows=(1,))
    with reading(tmp_path / "s") as (_, held):
        assert held.flows[0].promise is None
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("served_boards.OPTIONS", ALL)
        served = ServedBoards(tmp_path / "s")
        served.kill()
    with reading(tmp_path / "s") as (_, held):
        promise = held.flows[0].promise
    assert promise is not None
    assert promise.guarantee_ns == served.manager.flows["f1"].grant.guarantee_ns


def test_a_migration_to_a_slower_profile_breaks_what_it_says_and_shows_it_until_it_is_released(
    tmp_path: Path,
) -> None:
    served = granted(tmp_path / "s", {1: 10.1, 2: 11, 3: None})
    before = served.path.read_bytes()
    found = migrated(served, slower(LAB))
    assert served.path.read_bytes() == before, "nothing is changed by looking"
    assert [(was.before.flow.id, was.result) for was in found.flows] == [
        ("f1", MigrationResult.BROKEN),
        ("f2", MigrationResult.RAISED),
        ("f3", MigrationResult.BROKEN),
    ]
    text = (
        "gets 10.621 ms in place of the promised 10.007 ms (deadline 10.100 ms):"
        " the profile of s1, s2 has changed"
    )
    assert found.lines() == [
        "profile changed: s1, s2",
        f"f1: broken, {text}",
        f"f2: raised, {text.replace('10.100', '11.000')}",
        f"f3: broken, {text.replace(' (deadline 10.100 ms)', '')}",
        "2 of 3 promises break",
    ]
    assert found.values()["flows"][0] == {
        "id": "f1",
        "fate": "broken",
        "text": text,
        "promised_ns": served.manager.flows["f1"].grant.guarantee_ns,
        "deadline_ns": 10.1 * MS,
        "guarantee_ns": found.flows[0].guarantee_ns,
        "path_before": ["s1", "s2"],
        "path": ["s1", "s2"],
    }

    served.migration = found
    for _ in range(2):  # after the migration, and after one more restart
        served.start()
        served.settle()
        assert served.tables() == served.promised()
        assert [bool(promise.breaks) for promise in served.manager.flows.values()] == [True, False, True]
        shown = flow_values(served.manager, "f1")
        assert [(one["cause"], one["place"], one["text"]) for one in shown["broken"]] == [
            ("guarantee-raised", "s1", text)
        ]
        assert shown["broken"][0]["since_ms"] == 1_700_000_000_000
        assert shown["promised_ns"] < shown["deadline_ns"] < shown["guarantee_ns"]
        assert flow_values(served.manager, "f2")["promised_ns"] == shown["guarantee_ns"]
        health = health_values(served.manager)
        assert (health["healthy"], health["broken"]) == (False, {"guarantee-raised": 2})
        served.kill()
    listed = CliRunner().invoke(app, ["store", "list", str(served.path)]).output.splitlines()
    assert listed[0] == (
        f"f1: installed, s1-s2, guarantee 10.007 ms, deadline 10.100 ms; broken at s1: {text}"
    )
    served.start()
    served.settle()
    for name in ("f1", "f3"):
        assert served.release(name) == Released(name)
    assert health_values(served.manager)["healthy"]


def test_a_broken_promise_is_kept_again_with_the_former_profile(tmp_path: Path) -> None:
    served = granted(tmp_path / "s", {1: 10.1})
    served.migration = migrated(served, slower(LAB))
    served.start()
    served.kill()
    served.lab = LAB
    for _ in range(2):
        served.start()
        served.settle()
        assert not served.manager.flows["f1"].breaks
        served.kill()
    assert any("gets the guarantee again that was promised" in event.text for event in served.log)


def two_ways() -> Lab:
    """Return a lab of three switches in a triangle, a host at each."""
    names = {"a": "s1", "b": "s2", "c": "s3"}
    return lab_of(
        {
            "name": "triangle",
            "title": "Triangle",
            "switches": {
                name: {"datapath_id": f"00:00:70:b3:d5:6c:00:0{place}", "profile": "zodiac-fx", "config": {}}
                for place, name in enumerate(names.values(), 1)
            },
            "hosts": {
                host: {"mac": f"02:00:00:00:00:0{place}", "ip": f"10.0.0.{place}/24"}
                for place, host in enumerate(names, 1)
            },
            "links": [
                *({"a": host, "b": f"{switch}:1"} for host, switch in names.items()),
                {"a": "s1:2", "b": "s2:3"},
                {"a": "s2:2", "b": "s3:3"},
                {"a": "s3:2", "b": "s1:3"},
            ],
        }
    )


def test_a_migration_without_a_cable_moves_what_meets_its_deadline_and_breaks_the_rest(
    tmp_path: Path,
) -> None:
    served = ServedBoards(tmp_path / "s", lab=two_ways())
    served.settle()
    assert isinstance(served.request(flow(1, "a", "b"), deadline_ns=16 * MS), Granted)
    assert isinstance(served.request(flow(2, "a", "b")), Granted)
    assert isinstance(served.request(flow(3, "b", "c")), Granted)
    served.kill()
    found = migrated(served, without(two_ways(), "s1:2-s2:3"))
    assert [(was.result, was.values()["path_before"], was.values()["path"]) for was in found.flows] == [
        (MigrationResult.RAISED, ["s1", "s2"], ["s1", "s3", "s2"]),
        (MigrationResult.BROKEN, ["s1", "s2"], ["s1", "s3", "s2"]),
        (MigrationResult.KEPT, ["s2", "s3"], ["s2", "s3"]),
    ]
    assert found.flows[0].text.endswith("; by s1-s3-s2")
    served.migration = found
    served.start()
    served.settle()
    assert served.tables() == served.promised()
    assert [len(table) for table in served.tables().values()] == [2, 3, 3]


def test_a_migration_to_fewer_entries_keeps_the_first_and_shows_the_lost(tmp_path: Path) -> None:
    served = granted(tmp_path / "s", {1: None, 2: None, 3: None})
    served.entries = 2
    found = migrated(served, LAB, entries="2")
    assert found.differences == (("entries", "17", "2"),)
    assert [was.result for was in found.flows] == [
        MigrationResult.KEPT,
        MigrationResult.KEPT,
        MigrationResult.LOST,
    ]
    assert found.lines()[0] == "entries: 17 before, 2 now"
    assert found.lines()[3].startswith("f3: lost, entries at s1: 2 used + 1 requested > 2 entries allowed")
    assert found.values()["flows"][2]["path"] == []
    served.migration = found
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("served_boards.OPTIONS", {"entries": "2"})
        for _ in range(2):
            served.start()
            served.settle()
            assert [len(table) for table in served.tables().values()] == [2, 2]
            shown = flow_values(served.manager, "f3")
            assert (shown["state"], shown["guarantee_ns"], shown["path"]) == ("lost", None, [])
            assert shown["promised_ns"] > 0
            assert [one["cause"] for one in shown["broken"]] == [ViolationCause.NO_ROOM.value]
            assert health_values(served.manager)["broken"] == {"no-room": 1}
            served.kill()
        served.start()
        served.settle()
        assert isinstance(served.request(flow(3)), Refused)
        served.full = True
        assert served.release("f3") == NotStored("f3", FULL, Disposition.NOTHING)
        served.full = False
        for name in ("f3", "f1"):
            assert served.release(name) == Released(name)
        served.kill()
        served.start()
        served.settle()
        assert list(served.manager.flows) == ["f2"]
        assert isinstance(served.request(flow(3)), Granted)
        assert health_values(served.manager)["healthy"]


def test_no_promise_is_lost_to_a_broken_one(tmp_path: Path) -> None:
    """The first flow breaks in any case, so it must not take the last entry from the second, which holds."""
    served = granted(tmp_path / "s", {1: 10.1, 2: 11})
    served.entries = 1
    found = migrated(served, slower(LAB, percent=550), entries="1")
    assert [was.result for was in found.flows] == [MigrationResult.LOST, MigrationResult.RAISED]


def test_hosts_that_are_gone_lose_their_flows_and_what_was_being_removed_ends(tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "s")
    served.settle()
    for number in (1, 2):
        assert isinstance(served.request(flow(number)), Granted)
    served.manager.release(served.now_ns, "f2")
    served.carry()
    served.kill()
    hosts = MappingProxyType({name: host for name, host in LAB.hosts.items() if name != "H3"})
    links = tuple(link for link in LAB.links if "H3" not in {link.a.node, link.b.node})
    found = migrated(served, replace(LAB, name="other", hosts=hosts, links=links))
    assert found.differences == (("lab", "two-switch", "other"),)
    assert [was.result for was in found.flows] == [MigrationResult.LOST, MigrationResult.ENDED]
    served.migration = found
    served.start()
    served.settle()
    assert [promise.state for promise in served.manager.flows.values()] == [FlowState.LOST]
    assert [len(table) for table in served.tables().values()] == [0, 0]


def test_what_has_changed_meanwhile_is_not_migrated(tmp_path: Path) -> None:
    served = granted(tmp_path / "s", {1: 10.1})
    found = migrated(served, slower(LAB))
    served.lab = LAB
    served.start()
    served.settle()
    served.release("f1")
    served.kill()
    served.migration = found
    with pytest.raises(InputError, match="has changed meanwhile"):
        served.start()
