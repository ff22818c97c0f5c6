"""`loko plan --changes-per-s` gives the same guarantees as `loko serve` with the same options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.admission import Admitted
from loko.admission.schemes import SchemeName
from loko.document import LABS
from loko.service.admitter import SchemeAdmitter
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko.topology.requests import load_flows
from loko_testbed.cli.main import app, main
from loko_testbed.cli.serve import _AdmissionOptions, _by_admission

FLOWS = LABS / "two-switch/flows.yml"


def planned(*words, status=0):
    done = CliRunner().invoke(app, ["plan", "two-switch", str(FLOWS), *words])
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.parametrize("scheme", [SchemeName.LOKO, SchemeName.PACKETS])
@pytest.mark.parametrize("changes_per_s", [None, 2.0])
def test_plan_and_service_give_one_guarantee(scheme, changes_per_s):
    lab = load_lab("two-switch")
    options = dict.fromkeys(_AdmissionOptions._fields)
    given = _AdmissionOptions(**options | {"scheme": scheme, "changes_per_s": changes_per_s})
    admitter = _by_admission(lab, given, OpenFlow.V1_0).admitter
    answers = [admitter.decision(flow)() for flow in load_flows(FLOWS)]
    served = {answer.flow.id: answer.guarantee_ns for answer in answers if isinstance(answer, Admitted)}
    told = json.loads(
        planned(
            *("--changes-per-s", str(changes_per_s or 20), "--scheme", scheme.value, "--json"),
            status=int(len(served) < len(answers)),
        )
    )
    assert {accepted["flow"]: accepted["guarantee_ns"] for accepted in told["accepted"]} == pytest.approx(
        served
    )
    assert served


@pytest.mark.parametrize(("scheme", "large"), [(SchemeName.LOKO, 790), (SchemeName.PACKETS, 500)])
@pytest.mark.parametrize("changes_per_s", [20.0, 0.0])
def test_plan_and_service_give_one_guarantee_where_sizes_mix(
    scheme: SchemeName, large: int, changes_per_s: float, tmp_path: Path
) -> None:
    """The plan is that of plain `--frame-bytes`. Sizes between named hosts change no other promise."""
    lab = load_lab("two-switch")
    values = {"rate": "50 kbit/s", "burst": "1 frame", "udp_destination": 9}
    flows = [
        {**values, "id": f"f{size}", "source": a, "destination": b, "udp_source": size, "frame_bytes": size}
        for a, b, size in (("H1", "H2", 306), ("H3", "H4", large))
    ]
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(flows))
    words = ["--changes-per-s", str(changes_per_s), "--scheme", scheme.value, "--json"]
    done = CliRunner().invoke(app, ["plan", lab.name, str(file), *words])
    assert done.exit_code == 0, done.output
    told = {flow["flow"]: flow["guarantee_ns"] for flow in json.loads(done.output)["accepted"]}

    def served(*sizes: str) -> dict[str, float]:
        options = {"scheme": scheme, "changes_per_s": changes_per_s, "frame_bytes": list(sizes)}
        given = _AdmissionOptions(**dict.fromkeys(_AdmissionOptions._fields) | options)
        admitter = _by_admission(lab, given, OpenFlow.V1_0).admitter
        assert isinstance(admitter, SchemeAdmitter)
        answers = [admitter.decision(flow)() for flow in load_flows(file)]
        return {answer.flow.id: answer.guarantee_ns for answer in answers if isinstance(answer, Admitted)}

    assert served("306", str(large)) == told
    between = served("306", f"{large}@H4,H3")
    assert between.keys() == told.keys()
    flows.pop()
    file.write_text(json.dumps(flows))
    assert served("306") == {"f306": between["f306"]} != {"f306": told["f306"]}


def test_changes_are_reserved_and_said():
    assert "reserved of each switch: change=40, " in planned("--changes-per-s", "20", status=1)


def test_what_the_service_would_refuse_is_refused_in_a_line():
    for words, says in (
        (["--control", "change=1"], "the driver sends up to 40/s"),
        (["--echoes-per-s", "1"], "leave --changes-per-s out"),
        (["--scheme", "silo"], "does not know this control traffic"),
    ):
        assert says in planned("--changes-per-s", "20", *words, status=2)


@pytest.mark.parametrize("words", [[], ["--scheme", "loko"]])
def test_the_service_refuses_a_target_that_its_scheme_does_not_keep(words, capfd, monkeypatch):
    monkeypatch.setattr("sys.argv", ["loko", "serve", "two-switch", "--emulate", "--target-ms", "1", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capfd.readouterr()
    assert told.err.startswith("error: --target-ms: is for --scheme packets or ports")
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_a_plan_names_the_deadlines_that_the_service_would_not_keep(tmp_path: Path) -> None:
    values = {"source": "H1", "destination": "H3", "udp_destination": 4, "rate": "100 kbit/s"}
    values |= {"burst": "1 frame", "frame": "306 bytes"}
    flows = [
        {**values, "id": "late", "udp_source": 1, "deadline": "4.5 ms"},
        {**values, "id": "kept", "udp_source": 2, "deadline": "6 ms"},
    ]
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(flows))
    said = CliRunner().invoke(app, ["plan", "two-switch", str(file)])
    assert said.exit_code == 0
    assert "'loko serve' would refuse late: " in said.output
    option = re.search(r"plan with (--changes-per-s) (\d+)", said.output)
    assert option is not None
    again = CliRunner().invoke(app, ["plan", "two-switch", str(file), *option.groups()])
    assert again.exit_code == 1
    assert "refused: late: delay" in again.output
    assert "would refuse" not in again.output
