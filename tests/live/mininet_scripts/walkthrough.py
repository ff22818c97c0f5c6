"""Mininet's walkthrough with emulated boards, for Mininet's own Python; writes what it finds as JSON.

loko mininet walkthrough.py CONTROLLER_PORT CONTROLLER_LOG FILE
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import RemoteController
from mininet.topo import LinearTopo, SingleSwitchTopo

from loko_testbed.mininet import ZodiacFX

PORT, LOG, FILE = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
controller = partial(RemoteController, ip="127.0.0.1", port=PORT)
found = {"refused": {}}


def lines():
    return LOG.read_text().splitlines()


def until(condition, timeout_s=15):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def emulators():
    return subprocess.run(["pidof", "zodiac-fx"], stdout=subprocess.PIPE, check=False).stdout.split()


def all_reachable(net):
    """Ping between all hosts, again if a board has lost frames while its controller made entries."""
    return any(net.pingAll(timeout=2) == 0 for _ in range(10))


def mbits(net, client, server):
    server.cmd("iperf -s &")
    until(lambda: ":5001" in server.cmd("ss -ltn"))
    text = client.cmd("iperf -t 1 -f m -c", server.IP())
    server.cmd("kill %iperf")
    return float(re.findall(r"([\d.]+) Mbits/sec", text)[-1])


def network(topo, version, **options):
    net = Mininet(topo=topo, switch=partial(ZodiacFX, openflow=version), controller=controller, **options)
    net.start()
    assert net.waitConnected(timeout=20), lines()
    sessions = {f"session {switch.dpid} {4 if version == '1.3' else 1} 127.0.0.1" for switch in net.switches}
    assert until(lambda: sessions <= set(lines())), lines()
    time.sleep(0.2)  # the entry for all that miss
    return net


def linear():
    net = network(LinearTopo(3), "1.3")
    h1, h3, s1, s2, s3 = (net[name] for name in ("h1", "h3", "s1", "s2", "s3"))
    found["all reachable"] = all_reachable(net)
    found["processes"] = len(emulators())
    found["connected"] = [switch.connected() for switch in net.switches]
    found["mbits"] = mbits(net, h1, h3)
    found["dpctl"] = s1.dpctl("dump-flows")
    found["dpctl dump-ports"] = s1.dpctl("dump-ports")

    for state in ("down", "up"):
        net.configLinkStatus("s1", "h1", state)
        found["link " + state] = until(lambda state=state: lines()[-1] == f"port {s1.dpid} 1 {state}")
        found["lost_percent, link " + state] = min(net.ping([h1, h3], timeout=1) for _ in range(2))

    s2.stop(deleteIntfs=False)
    found["connected, stopped"] = s2.connected()
    found["dpctl, stopped"] = s2.dpctl("dump-flows")
    found["lost_percent, stopped"] = net.ping([h1, h3], timeout=1)
    before = len([line for line in lines() if line.startswith(f"session {s2.dpid}")])
    s2.start(net.controllers)
    net.waitConnected(timeout=20)
    until(lambda: len([line for line in lines() if line.startswith(f"session {s2.dpid}")]) > before)
    time.sleep(0.2)
    found["all reachable, started"] = all_reachable(net)

    net.configLinkStatus("s1", "h1", "down")
    s1.stop(deleteIntfs=False)
    s1.start(net.controllers)
    net.waitConnected(timeout=20)
    net.configLinkStatus("s1", "h1", "up")
    found["all reachable, started without a link"] = all_reachable(net)

    refuse("link to a running board", lambda: net.addLink(s1, h3))
    os.kill(s3._process.pid, signal.SIGKILL)
    refuse("killed emulator", s3.connected)
    net.stop()
    found["processes, end"] = len(emulators())
    found["files, end"] = sorted(str(path) for path in Path("/tmp").glob("*zodiac*"))


def shaped():
    net = network(SingleSwitchTopo(2), "1.0", link=partial(TCLink, delay="20ms", bw=2))
    h1, h2 = net["h1"], net["h2"]
    found["netem"] = "netem" in h1.cmd("tc qdisc show")
    found["all reachable, shaped"] = all_reachable(net)
    found["shaped_ms"] = net.pingFull([h1, h2], timeout=2)[0][2][2]
    found["shaped_mbits"] = mbits(net, h1, h2)
    found["dpctl 1.0"] = net["s1"].dpctl("dump-flows")
    net.stop()


def refuse(name, call):
    try:
        call()
    except (ValueError, RuntimeError) as error:
        found["refused"][name] = f"{type(error).__name__}: {error}"


def board(controllers=1, **options):
    net = Mininet(build=False)
    try:
        switch = net.addSwitch("s1", cls=ZodiacFX, **options)
        net.addLink(net.addHost("h1"), switch)
        switch.start([controller(f"c{number}") for number in range(controllers)])
    finally:
        net.stop()


def refused():
    refuse("two controllers", lambda: board(controllers=2))
    for name, options in {
        "protocols": {"protocols": "OpenFlow13"},
        "openflow": {"openflow": "1.2"},
        "dpid": {"dpid": "1" * 16},
        "profile": {"profile": "none"},
        "quirks": {"quirks": {"without": ["none"]}},
        "settings": {"settings": {"colour": "red"}},
    }.items():
        refuse(name, lambda options=options: board(**options))
    refuse("five ports", lambda: Mininet(topo=SingleSwitchTopo(5), switch=ZodiacFX, controller=None))
    found["processes, refused"] = len(emulators())


linear()
shaped()
refused()
FILE.write_text(json.dumps(found))
