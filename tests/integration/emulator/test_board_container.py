"""The first process of a board's container, in namespaces like a container's, and the example topologies."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from loko.document import LABS
from loko_testbed.cli.main import app

START = Path(__file__).resolve().parents[3] / "setup/container/start-board"
EXAMPLES = sorted((LABS / "containerlab-examples").glob("*.clab.yml"))
CABLES = """
set -e
mount -t sysfs none /sys
mount -t tmpfs none /run
ip link set lo up
for port in $PORTS; do
    ip link add "eth$port" type veth peer name "far$port"
    ip link set "far$port" up
    ip link set "eth$port" up
done
"""
BECOMES_HEALTHY = """
"$START" &
until test -e /run/ready; do sleep 0.1; done
kill $!
wait $! || true
cat /run/board.toml
"""


def started(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with cables in namespaces of its own, which end with it."""
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "START": str(START)}
    return subprocess.run(
        [
            "unshare",
            "--net",
            "--mount",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            CABLES + script,
        ],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.namespaces
@pytest.mark.waits
def test_a_board_becomes_healthy_and_its_log_says_how_it_is_configured() -> None:
    done = started(
        BECOMES_HEALTHY,
        PORTS="1 4",
        CLAB_INTFS="2",
        CONTROLLER="127.0.0.1:6633",
        OPENFLOW="1.3",
        QUIRKS="spec",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "start-board: waiting for 2 interfaces",
        "start-board: OpenFlow 1.3, controller 127.0.0.1:6633, quirks spec",
    ]
    board = tomllib.loads(done.stdout[done.stdout.index("[process]") :])["board"][0]
    assert board["ports"] == {"1": "eth1", "4": "eth4"}
    assert board["config"]["openflow_ports"] == [1, 2, 3, 4]


@pytest.mark.namespaces
@pytest.mark.waits
def test_a_file_in_the_container_takes_the_place_of_the_variables(tmp_path: Path) -> None:
    file = tmp_path / "zodiac-fx.toml"
    file.write_text("[process]\nready = '/run/no\n")
    script = (
        'touch /run/etc && cp -r /etc /run/copy && mount --bind /run/copy /etc && cp "$FILE" /etc/\n"$START"'
    )
    done = started(script, PORTS="1", INTERFACES="eth1", FILE=str(file))
    assert done.returncode == 2
    assert "/etc/zodiac-fx.toml" in done.stderr


@pytest.mark.namespaces
@pytest.mark.waits
@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "start-board: INTERFACES: name the ports that have cables, such as 'eth1 eth2'\n"),
        (
            {"INTERFACES": "eth1"},
            "start-board: CONTROLLER: is address and port of the controller, such as 172.20.20.1:6633\n",
        ),
        (
            {"INTERFACES": "eth1", "CONTROLLER": "127.0.0.1:6633", "OPENFLOW": "1.4"},
            "start-board: OPENFLOW: is 1.0 or 1.3\n",
        ),
        (
            {"INTERFACES": "eth5", "CONTROLLER": "127.0.0.1:6633"},
            "start-board: eth5: the board has the ports eth1 to eth4\n",
        ),
    ],
    ids=["interfaces", "controller", "openflow", "port"],
)
def test_what_is_missing_or_wrong_is_one_line_of_the_log_before_there_are_cables(
    variables: dict[str, str], told: str
) -> None:
    done = started('"$START"', PORTS="", **variables)
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_a_network_that_can_be_planned(example: Path, tmp_path: Path) -> None:
    words = ["lab", "new", "--from", str(example), "--rate", "95 Mbit/s", "--out", str(tmp_path / "lab")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    lab = yaml.safe_load((tmp_path / "lab/lab.yml").read_text())
    document = yaml.safe_load(example.read_text())["topology"]
    assert len(lab["links"]) == len(document["links"])
    board = document["nodes"]["board"]["env"]
    assert set(board) <= {"CONTROLLER", "OPENFLOW", "QUIRKS"}
    # A controller that learns addresses floods, which in OpenFlow 1.3 reaches ports 1 to 3 only (quirk 183).
    is_flooded_short = board.get("OPENFLOW") == "1.3" and board.get("QUIRKS") != "spec"
    reached = range(1, 4) if is_flooded_short else range(1, 5)
    ports = [end for link in document["links"] for end in link["endpoints"] if end.startswith("board:")]
    assert set(ports) <= {f"board:eth{port}" for port in reached}
