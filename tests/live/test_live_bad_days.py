"""Live runs under bad conditions: a full disk, and files that Open vSwitch has left on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
from disposable_root import ROOT
from live_harness import needs_namespaces

from loko_testbed.instruments.programs import locate

pytestmark = [pytest.mark.namespaces, needs_namespaces]


def with_own_mounts(script, *words):
    """Run a script in a mount namespace of its own."""
    command = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "bash",
        "-ec",
        script,
        "bash",
        *map(str, words),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=250)


@pytest.mark.waits
def test_results_that_do_not_fit_on_the_disk_are_one_line_and_room_mends_it(tmp_path):
    script = """
        mount -t tmpfs -o size=100k small "$1"
        evaluate() {
            "$2" -c 'from loko_testbed.cli.main import main; main()' evaluate fig17a --points admitted \\
                --runs 1 --seconds 1 --sender simple --out "$1"
        }
        evaluate "$@" && exit 9
        echo "status $?"
        mount -o remount,size=100m "$1"
        evaluate "$@"
        ls "$1"
    """
    done = with_own_mounts(script, tmp_path, sys.executable)
    assert done.returncode == 0, done.stderr
    assert "status 2" in done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "No space left on device" in line
    assert "fig17a.parquet" in done.stdout


@pytest.mark.waits
@pytest.mark.usefixtures("apart")
@pytest.mark.skipif(locate("ovs-vswitchd") is None, reason="Open vSwitch is not installed")
def test_a_stale_database_and_socket_of_open_vswitch_are_in_nobodys_way(tmp_path):
    script = """
        mkdir -p /run/openvswitch /etc/openvswitch
        for place in /run/openvswitch /etc/openvswitch; do mount -t tmpfs stale $place; done
        echo 1 >/run/openvswitch/ovsdb-server.pid
        echo 1 >/run/openvswitch/ovs-vswitchd.pid
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/run/openvswitch/db.sock")'
        echo 'no database' >/etc/openvswitch/conf.db
        "$1" -m loko_testbed.cli.smoke --backend ovs --seconds 0.5
        cat /etc/openvswitch/conf.db
    """
    done = with_own_mounts(script, sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two-switch, ovs" in done.stdout
    assert "FAILED" not in done.stdout
    assert done.stdout.endswith("no database\n")
