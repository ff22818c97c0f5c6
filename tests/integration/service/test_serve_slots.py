"""`loko serve --schedule` from the outside: slots over REST, send times, and kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served_lab import LOKO, TIMEOUT_S, ServedLab, made, slotted, survives_kills, wait_for

from loko.document import LABS
from loko.service import shapes

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    folder = tmp_path_factory.mktemp("slots")
    with ServedLab(folder, "--schedule", str(made(folder))) as lab:
        yield lab


def ask(lab: ServedLab, *args: Any, **values: object) -> httpx.Response:
    return lab.client.post("/v1/slots", json=slotted(*args, **values))


def sends(lab: ServedLab, host: str) -> dict[str, tuple[int, int, int]]:
    values = shapes.HostScheduleView.model_validate_json(lab.client.get(f"/v1/hosts/{host}/sends").content)
    assert values.host == host
    return {send.id: (send.slot, send.offset_ns, send.period_ns) for send in values.sends}


def test_the_flows_of_the_schedule_are_there_and_each_host_hears_of_its_own(served: ServedLab) -> None:
    planned = json.loads((served.folder / "schedule.json").read_text())
    shown = {flow["id"]: flow for flow in served.flows()}
    for scheduled in planned["scheduled"]:
        assert shown[scheduled["id"]]["send_slot"]["slot"] == scheduled["slot"]
        assert shown[scheduled["id"]]["guarantee_ns"] == pytest.approx(1e3 * scheduled["guarantee_us"], abs=1)
        assert sum(hop["delay_ns"] for hop in shown[scheduled["id"]]["path"]) == pytest.approx(
            shown[scheduled["id"]]["guarantee_ns"]
        )
        offset_ns, period_ns = (round(1e3 * scheduled["send"][name]) for name in ("offset_us", "period_us"))
        assert sends(served, scheduled["send"]["host"]) == {
            scheduled["id"]: (scheduled["slot"], offset_ns, period_ns)
        }
    assert sends(served, "H3") == {}
    cycle = shapes.ScheduleView.model_validate_json(served.client.get("/v1/schedule").content)
    assert (cycle.slots, cycle.flows, cycle.frame_bytes) == (4, 2, [306])
    assert cycle.base_period_ns == round(1e3 * planned["base_period_us"])
    assert served.client.get("/v1/service").json()["grants"] == "slots"


def test_a_host_fetches_the_file_of_its_source(served: ServedLab) -> None:
    """This is the input of `zodiac-fx slots`; unit tests of the schedule cover its other keys."""
    answer = served.client.get("/v1/hosts/H1/source")
    assert answer.headers["content-type"].startswith("text/plain")
    told = tomllib.loads(answer.text)
    assert told["period_ns"] == served.client.get("/v1/schedule").json()["base_period_ns"]
    _, offset_ns, period_ns = sends(served, "H1")["f1"]
    (flow,) = told["flow"]
    assert (flow["offset_ns"], flow["period_ns"]) == (offset_ns, period_ns)
    assert "flow" not in tomllib.loads(served.client.get("/v1/hosts/H3/source").text)
    unknown = served.client.get("/v1/hosts/H9/source")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown-host")


def test_each_interface_of_a_host_has_its_slots_also_after_a_restart(tmp_path: Path) -> None:
    path = str(LABS / "two-switch/server.yml")
    schedule = made(tmp_path, lab=path, ends=(("server:eth1", "H3"), ("server:eth2", "H1")))
    with ServedLab(tmp_path, "--schedule", str(schedule), lab=path) as lab:
        answer = ask(lab, 3, "server:eth1", "server:eth2")
        assert answer.status_code == 201, answer.text
        before = [sends(lab, name) for name in ("server:eth1", "server:eth2")]
        assert [set(of) for of in before] == [{"f1", "f3"}, {"f2"}]
        source = tomllib.loads(lab.client.get("/v1/hosts/server:eth2/source").text)
        assert [flow["source"] for flow in source["flow"]] == ["server-eth2"]
        unknown = lab.client.get("/v1/hosts/server/sends")
        assert unknown.status_code == 404
        says = "say which interface of 'server': server:eth1 or server:eth2"
        assert says in unknown.json()["error"]["message"]
        lab.kill()
        lab.start()
        lab.wait_healthy()
        assert [sends(lab, name) for name in ("server:eth1", "server:eth2")] == before
        assert lab.client.delete("/v1/flows/f3").status_code == 204
        assert set(sends(lab, "server:eth1")) == {"f1"}


def test_emulated_hosts_send_in_their_slots_also_in_openflow_1_3(tmp_path: Path) -> None:
    """Delays are measured, and every frame meets its guarantee; a flow added later sends, too."""
    schedule = made(tmp_path, "--openflow", "1.3")
    options = ("--schedule", str(schedule), "--openflow", "1.3", "--emulate", "--traffic")
    with ServedLab(tmp_path, *options, has_boards=False) as lab:
        assert ask(lab, 3).status_code == 201
        names = ("f1", "f2", "f3")
        wait_for(lambda: all(lab.delays().get(name, {}).get("received", 0) > 5 for name in names), "frames")
        for name, delays in lab.delays().items():
            assert (delays["lost"], delays["late"]) == (0, 0), name
            assert 0 < delays["max_ns"] <= delays["guarantee_ns"], name


def test_a_flow_gets_a_slot_nobody_is_moved_and_its_slot_is_given_again(served: ServedLab) -> None:
    before = {flow["id"]: flow["send_slot"] for flow in served.flows()}
    base_ns = served.client.get("/v1/schedule").json()["base_period_ns"]
    granted = ask(served, 3, period_ns=3 * base_ns)
    assert granted.status_code == 201, granted.text
    send_slot = shapes.FlowView.model_validate_json(granted.content).send_slot
    assert send_slot is not None
    assert send_slot.period_ns == 3 * base_ns
    assert ask(served, 3, period_ns=3 * base_ns).status_code == 200
    assert ask(served, 3).json()["error"]["code"] == "conflict"
    assert sends(served, "H1")["f3"] == (send_slot.slot, send_slot.offset_ns, 3 * base_ns)
    others = [ask(served, number) for number in (4, 5, 6)]
    assert [other.status_code for other in others] == [201, 201, 409]
    error = others[-1].json()["error"]
    assert (error["code"], error["quantity"], error["used"], error["allowed"]) == (
        "does-not-fit",
        "slots",
        4,
        4,
    )
    assert error["suggestion"] == "release a flow on its path: no schedule has a slot for all of them"
    shapes.ErrorBody.model_validate_json(others[-1].content)
    assert served.client.delete("/v1/flows/f3").status_code == 204
    assert "f3" not in sends(served, "H1")
    again = ask(served, 6)
    assert again.json()["send_slot"]["slot"] == send_slot.slot
    after = {flow["id"]: flow["send_slot"] for flow in served.flows()}
    assert {name: after[name] for name in before} == before
    assert served.switches()["s1"]["use"][1] == {
        "quantity": "entries",
        "used": 5,
        "allowed": 17,
        "unit": "entries",
        "fraction": 5 / 17,
    }
    for number in (4, 5, 6):
        assert served.client.delete(f"/v1/flows/f{number}").status_code == 204


@pytest.mark.parametrize(
    ("values", "status", "says"),
    [
        ({"source": "H9"}, 422, "lab 'two-switch' has no host 'H9'"),
        ({"source": "H3"}, 422, "a flow from H3 to itself"),
        ({"frame_bytes": 307}, 422, "its frames have 307 bytes, the slots are planned for 306"),
        ({"period_ns": 5}, 422, "its period of 0.005 us is no multiple of the base period"),
        ({"rate_bps": 5}, 422, "unknown key 'rate_bps'"),
        ({"udp_source": 1}, 409, "flows 'f1' and 'f9' have the same hosts and ports"),
    ],
)
def test_wrong_input_is_explained(
    served: ServedLab, values: dict[str, object], status: int, says: str
) -> None:
    answer = served.client.post("/v1/slots", json={**slotted(9), **values})
    assert answer.status_code == status
    assert says in answer.json()["error"]["message"]
    assert "\n" not in answer.json()["error"]["message"]


def test_it_admits_nothing(served: ServedLab) -> None:
    refused = served.post(7)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "gives-slots")
    unknown = served.client.get("/v1/hosts/H9/sends")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown-host")


def test_kill_9_while_flows_come_and_go(tmp_path: Path) -> None:
    """As for admission. The flows of the schedule are released first, and do not come back."""
    with ServedLab(tmp_path, "--schedule", str(made(tmp_path))) as lab:
        for name in ("f1", "f2"):
            assert lab.client.delete(f"/v1/flows/{name}").status_code == 204
        send_slots: dict[str, Any] = {}

        def post(number: int) -> httpx.Response:
            answer = ask(lab, number)
            if answer.status_code == 201:
                send_slots[f"f{number}"] = answer.json()["send_slot"]
            return answer

        for there in survives_kills(lab, post, first=10, kills=2):
            assert not {"f1", "f2"} & there
            for flow_now in lab.flows():
                assert send_slots.get(flow_now["id"], flow_now["send_slot"]) == flow_now["send_slot"], (
                    "nobody is moved"
                )
            slots = [flow["send_slot"]["slot"] for flow in lab.flows()]
            assert len(set(slots)) == len(slots), "all leave by the cable of H1"
            for switch in lab.switches().values():
                assert switch["use"][1]["used"] == len(there)
        wait_for(lambda: set(sends(lab, "H1")) == there, "the send times")


@pytest.mark.namespaces
@pytest.mark.waits
def test_the_commands_of_the_page_do_as_it_says(tmp_path: Path) -> None:
    """The commands run as printed, in a private network where the default ports are free."""
    page = (ROOT / "docs" / "service.md").read_text().split("## Slots instead of admission")[1]
    lines = [line.strip() for line in page.split("\n## ")[0].splitlines() if line.startswith("    ")]
    schedule, serve, *asked = lines
    assert [line.split()[0] for line in asked] == ["curl"] * 3
    documents = [slotted(1), slotted(2, "H4", "H2")]
    (tmp_path / "flows.yml").write_text(json.dumps(documents))
    script = f"""
        ip link set lo up
        {schedule}
        {serve} & service=$!
        trap 'kill $service; wait $service' EXIT
        until curl -fs http://127.0.0.1:8080/healthz > healthz; do kill -0 $service; sleep 0.2; done
    """ + "".join(f"{line} -sS -w '\\n%{{http_code}}\\n'\n" for line in asked)
    done = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "bash", "-ec", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(LOKO).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    granted, created, told, ok, *gone = (line for line in done.stdout.splitlines() if line)
    assert (created, ok, gone) == ("201", "200", ["204"])
    send_slot = json.loads(granted)["send_slot"]
    (sent,) = (send for send in json.loads(told)["sends"] if send["id"] == "c")
    assert {name: sent[name] for name in send_slot} == send_slot
