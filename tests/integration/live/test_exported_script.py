"""The exported script of Mininet, built by Mininet: hosts reach each other over bridges of the kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko_testbed.cli.main import app

PING_ALL = """
import importlib, sys
from mininet.net import Mininet
from mininet.node import Switch


class Bridge(Switch):
    def __init__(self, name, **params):
        super().__init__(name, **{**params, 'inNamespace': True})

    def start(self, controllers):
        self.cmd('ip link add br0 type bridge && ip link set br0 up')
        for interface in self.intfNames():
            if interface != 'lo':
                self.cmd(f'ip link set {interface} master br0 up')


sys.path.insert(0, sys.argv[1])
[topology] = importlib.import_module('exported').topos.values()
network = Mininet(topo=topology(), switch=Bridge, controller=None)
network.start()
try:
    print('dropped', network.pingAll(timeout='2'))
    print([interface.name + ' ' + interface.MAC() for host in network.hosts for interface in host.intfList()])
finally:
    network.stop()
"""


@pytest.mark.namespaces
@pytest.mark.waits
@pytest.mark.usefixtures("apart")
def test_hosts_of_the_script_reach_each_other(tmp_path: Path) -> None:
    words = ["lab", "export", "two-switch/server.yml", "mininet", "--out", str(tmp_path / "exported.py")]
    assert CliRunner().invoke(app, words).exit_code == 0
    done = subprocess.run(
        [sys.executable, "-c", PING_ALL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    dropped, interfaces = done.stdout.splitlines()
    assert float(dropped.removeprefix("dropped ")) == 0, done.stderr
    assert "'server-eth2 02:00:00:00:00:04'" in interfaces
