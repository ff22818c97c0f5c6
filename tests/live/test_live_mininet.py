"""The emulated board as a switch of Mininet, in scripts that know nothing else of the testbed."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from live_harness import needs_namespaces
from mininet_machine import run_alone

from benchmarks.builds import BUILD
from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.programs import locate

HERE = Path(__file__).parent / "mininet_scripts"
CLIENTS = Path(__file__).parents[1] / "clients"
DOCS = Path(__file__).parents[2] / "docs"
INSTALLED = BUILD / ".clients"

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
    pytest.mark.skipif(locate("mn") is None, reason="Mininet is not installed"),
]

_WITH_CONTROLLER = """
"$1" "$2/start_os_ken.py" --ofp-listen-host 127.0.0.1 --ofp-tcp-listen-port 6655 -- "$3/learning_switch.py" \\
    >/tmp/controller.txt 2>/tmp/controller-errors.txt &
until ss -ltn | grep -q :6655; do sleep 0.1; done
shift 3
"$@" || { cat /tmp/controller-errors.txt; exit 1; }
"""


def run_with_controller(folder: Path, *command: str, **options) -> str:
    """Run a command as `run_alone`, with a controller at port 6655 that prints to /tmp/controller.txt."""
    start = ["sh", "-ec", _WITH_CONTROLLER, "sh", sys.executable, str(CLIENTS), str(HERE)]
    return run_alone(folder, [*start, *command], **options)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walkthrough")
    script = str(HERE / "walkthrough.py")
    run_with_controller(folder, "loko", "mininet", script, "6655", "/tmp/controller.txt", "found.json")
    return json.loads((folder / "found.json").read_text())


def test_hosts_reach_each_other_through_three_boards(found) -> None:
    assert found["connected"] == [True, True, True]
    assert found["processes"] == 3
    assert found["all reachable"]
    assert found["mbits"] > 1


def test_a_link_that_goes_down_and_up_is_reported_to_the_controller(found) -> None:
    assert found["link down"]
    assert found["lost_percent, link down"] == 100
    assert found["link up"]
    assert found["lost_percent, link up"] == 0


def test_a_board_is_stopped_and_started(found) -> None:
    assert not found["connected, stopped"]
    assert found["lost_percent, stopped"] == 100
    assert found["all reachable, started"]
    assert found["all reachable, started without a link"]


def test_only_logs_are_left_at_the_end(found) -> None:
    assert found["processes, end"] == 0
    assert found["files, end"] == [f"/tmp/s{number}-zodiac-fx.log" for number in (1, 2, 3)]


def test_the_rate_of_a_link_counts(found) -> None:
    assert found["all reachable, shaped"]
    assert 0.5 < found["shaped_mbits"] < 2.5


def test_the_delay_of_a_link_counts(found) -> None:
    """Each of two links delays by 20 ms in each direction."""
    if not found["netem"]:
        pytest.skip("this kernel has no netem")
    assert 80 <= found["shaped_ms"] < 200


def test_what_a_board_cannot_do_is_refused_in_one_line(found) -> None:
    refused = found["refused"]
    for name, text in {
        "five ports": "ValueError: s1: no port 5 for s1-eth5: a Zodiac FX has ports 1 to 4",
        "two controllers": "ValueError: s1: a Zodiac FX has one controller, not c0, c1",
        "protocols": "ValueError: s1: protocols is a parameter of Open vSwitch, not of a Zodiac FX: write",
        "openflow": "ValueError: s1: openflow='1.2': a Zodiac FX speaks 1.0 and 1.3",
        "dpid": "ValueError: s1: dpid 1111111111111111 has more than 48 bits: it is the board's MAC address",
        "profile": "RuntimeError: s1: the emulator has ended: profile: unknown profile `none`",
        "quirks": "RuntimeError: s1: the emulator has ended: ",
        "settings": "RuntimeError: s1: the emulator has ended: ",
        "link to a running board": "ValueError: s1: no port for s1-eth3 while the board runs: call stop",
        "killed emulator": "RuntimeError: s3: the emulator was killed by signal 9",
    }.items():
        assert refused[name].startswith(text)
        assert "\n" not in refused[name]
    assert found["processes, refused"] == 0


def test_dpctl_answers(found) -> None:
    told = found["dpctl dump-ports"]
    assert told.startswith("s1: no 'dpctl dump-ports': a Zodiac FX answers only its controller;")
    assert told.count("\n") == 1
    assert found["dpctl, stopped"] == "s2: the board is off\n"
    if locate("ovs-ofctl") is None:
        assert found["dpctl"] == "s1: the program 'ovs-ofctl' is missing: install openvswitch-common\n"
        pytest.skip("there is no ovs-ofctl")
    *others, miss = sorted(found["dpctl"].splitlines(), key=lambda line: "priority=0" in line)
    assert re.fullmatch(
        r" cookie=0x0, table=0, n_packets=\d+, n_bytes=\d+, priority=0 actions=CONTROLLER:65535", miss
    )
    entry = r" cookie=0x0, table=0, n_packets=\d+, n_bytes=\d+, priority=1,in_port=1,dl_src=\S+,dl_dst=\S+"
    assert any(re.fullmatch(rf"{entry} actions=output:2", line) for line in others), found["dpctl"]
    assert re.search(r"priority=1,in_port=\"?1\"?,dl_src=\S+,dl_dst=\S+ actions=output:", found["dpctl 1.0"])


_KILLED = """
loko mininet waiting.py 2>/dev/null &
until [ -e up ]; do sleep 0.05; done
kill -KILL "$(cat up)"
zodiac-fx run other.toml 2>/dev/null &
until [ -e other-ready ]; do sleep 0.05; done
pidof zodiac-fx | wc -w
mn -c >cleaned.txt 2>&1
pidof zodiac-fx | wc -w
find /tmp -mindepth 1 -maxdepth 1 ! -type d
ip -o link | cut -d : -f 2
"""
_WAITING = """
import os, time
from pathlib import Path
from mininet.net import Mininet
from mininet.topo import LinearTopo
from loko_testbed.mininet import ZodiacFX

net = Mininet(topo=LinearTopo(2), switch=ZodiacFX, controller=None)
net.start()
Path("up").write_text(str(os.getpid()))
time.sleep(60)
"""
_OTHER = """
[process]
scheduling = "other"
ready = "other-ready"
[[board]]
name = "other"
controller = "127.0.0.1:1"
"""


def test_a_killed_script_leaves_nothing_after_mn_c_and_others_boards_run_on(tmp_path) -> None:
    (tmp_path / "waiting.py").write_text(_WAITING)
    (tmp_path / "other.toml").write_text(_OTHER)
    told = run_alone(tmp_path, ["sh", "-c", _KILLED], path=str(emulator().parent))
    assert told.split() == ["1", "1", "lo"]


def test_the_commands_on_the_page_run_as_printed(tmp_path) -> None:
    page = (DOCS / "mininet.md").read_text(encoding="utf-8")
    script = re.search(r"## In your script\n\n((?:    .*\n|\n)+)", page)
    (tmp_path / "two-boards.py").write_text(textwrap.dedent(script.group(1)))
    commands = re.findall(r"^    (sudo .*)$", page, re.M)
    assert len(commands) == 3
    testcontroller = (
        shutil.which("ovs-testcontroller") or INSTALLED / "openvswitch/usr/bin/ovs-testcontroller"
    )
    if not Path(testcontroller).exists():
        commands = [command for command in commands if "remote" in command or command.startswith("sudo loko")]
        assert len(commands) == 2
    else:  # Mininet cannot start a controller whose path has a space
        (tmp_path / "ovs-testcontroller").symlink_to(testcontroller)
    told = run_with_controller(tmp_path, "sh", "-exc", "\n".join(commands), path="/run/test")
    assert told.count(" dropped (") == len(commands)
    assert told.count("'received': ") == 1
