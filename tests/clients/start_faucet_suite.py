"""Run one class of Faucet's own tests with emulated boards instead of Open vSwitch.

This runs in Faucet's environment, in its own network and mount namespaces. `faucet_trial.py` starts it and
reads its output, a line of JSON for each test. It adapts the suite to the switch and to this machine:

- a switch is an emulator process with a board whose four ports all belong to OpenFlow;
- ports are taken down by their cables, because the firmware ignores PORT_MOD (quirk 93);
- there is only one controller: Gauge is started, but its part of a test is skipped;
- `send_discovery.py` replaces ladvd, which needs a user account of its own;
- links have no added delay, and the suite waits neither for low load nor for TCP ports to become reusable.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

SOURCE, PROGRAM, QUIRKS, NAME = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
sys.path[:0] = [str(SOURCE), str(SOURCE / "tests/integration")]
os.environ["FAUCET_DIR"] = str(SOURCE / "faucet")

from clib import config_generator, mininet_test_base, mininet_test_topo, mininet_test_util  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.node import Switch  # noqa: E402

HARDWARE = "ZodiacFX"
PORTS = (1, 2, 3, 4)
BOARD = """
[process]
scheduling = "other"
rest_us = 1000
[[board]]
name = "{name}"
profile = "zodiac-fx"
controller = "{controller}"
seed = 1
[board.ports]
{wiring}
[board.config]
mac = "{mac}"
quirks = "{quirks}"
openflow_ports = {ports}
native_ports = []
"""


class TooManyPortsError(Exception):
    """The test needs a switch with more ports than a board has."""


class Board(Switch):
    """An emulated board, which connects to the first controller only."""

    def __init__(self, name, dpid=None, datapath=None, **params):
        self._process = None
        self._folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        super().__init__(name, dpid=dpid, **params)

    def cmd(self, *args, success=0, **kwargs):
        """Ignore commands for Open vSwitch."""
        return "" if any("ovs-" in str(arg) for arg in args) else super().cmd(*args, **kwargs)

    def start(self, controllers):
        wiring = {
            self.ports[interface]: interface.name for interface in self.intfList() if interface.name != "lo"
        }
        if not set(wiring) <= set(PORTS):
            raise TooManyPortsError(f"{self.name}: ports {sorted(wiring)}")
        for interface in wiring.values():
            super().cmd(f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")
            super().cmd(f"ip link set {interface} up")
        board = BOARD.format(
            name=self.name,
            controller=f"{controllers[0].IP()}:{controllers[0].port}",
            wiring="\n".join(f'{port} = "{interface}"' for port, interface in wiring.items()),
            mac=int(self.dpid, 16).to_bytes(6, "big").hex(":"),
            quirks=QUIRKS,
            ports=list(PORTS),
        )
        configuration = self._folder / "board.toml"
        configuration.write_text(board)
        command = [PROGRAM, "run", "--die-with-parent", str(configuration)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)

    @property
    def log(self):
        return self._folder / "log"

    def stop(self, deleteIntfs=True):  # noqa: N803 - Mininet's name
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            sys.stderr.write(self.log.read_text())
        super().stop(deleteIntfs)


class Changed:
    """Methods that replace those of the suite."""

    def _block_non_faucet_packets(self):
        """Do nothing, as nothing else sends here."""

    def _controllers_connected(self):
        faucets = [
            controller
            for controller in self.net.controllers
            if isinstance(controller, mininet_test_topo.FAUCET)
        ]
        return all(faucet.connected() for faucet in faucets)

    def _wait_load(self, load_retries=10):
        """Do not wait: the machine may be busy."""

    def gauge_smoke_test(self):
        """Skip the check, as Gauge has no connection."""

    def _portmod(self, int_dpid, port_no, config, mask):
        state = "down" if int(config) & int(mask) else "up"
        for switch in self.net.switches:
            if int(switch.dpid, 16) == int(int_dpid):
                switch.cmd(f"ip link set {switch.intfs[int(port_no)]} {state}")


def change_suite():
    base = mininet_test_base.FaucetTestBase
    base.hardware = HARDWARE
    base.LADVD = f"{sys.executable} {Path(__file__).with_name('send_discovery.py')}"
    for name, method in vars(Changed).items():
        if callable(method):
            setattr(base, name, method)
    for module in (mininet_test_topo, config_generator):
        module.FaucetSwitch = Board
    mininet_test_topo.FaucetSwitchTopo.DELAY = config_generator.FaucetTopoGenerator.DELAY = None
    mininet_test_util.MIN_PORT_AGE = 0
    whole = mininet_test_topo.BaseFAUCET._command

    def command(self, env, name, args):
        libraries = f"PYTHONPATH={os.environ['PYTHONPATH']}:"
        return whole(self, env, name, args).replace("PYTHONPATH=", libraries, 1)

    mininet_test_topo.BaseFAUCET._command = command


def main():
    setLogLevel("error")
    change_suite()
    import mininet_multidp_tests  # noqa: PLC0415 - they take the switch as it is by then
    import mininet_tests  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="faucet-tests-")
    ports = str(Path(folder) / "ports")
    serve = threading.Thread(target=mininet_test_util.serve_ports, args=(ports, 5, 5), daemon=True)
    serve.start()
    while not Path(ports).exists():
        time.sleep(0.1)
    kind = getattr(mininet_tests, NAME, None) or getattr(mininet_multidp_tests, NAME)
    for test in unittest.TestLoader().getTestCaseNames(kind):
        config = {"hardware": HARDWARE, "hw_switch": False}
        case = kind(test, config, folder, ports, 99, [port - PORTS[0] for port in PORTS], PORTS[0])
        result = unittest.TestResult()
        case.run(result)
        said = [text.strip().splitlines()[-1] for _, text in result.failures + result.errors]
        print(json.dumps({"test": f"{NAME}.{test}", "said": said}), flush=True)


if __name__ == "__main__":
    main()
