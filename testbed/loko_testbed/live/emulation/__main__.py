"""Run emulated boards of a lab, in a process of their own.

python -m loko_testbed.live.emulation two-switch --controller 127.0.0.1:6633
"""

from __future__ import annotations

import contextlib

import uvloop

from loko.control.address import Address
from loko.program_options import OneLineParser
from loko.switch_model.device import Profile
from loko.terminal import user_errors_end
from loko.topology.lab import load_lab
from loko_testbed.live.emulation.boards import LoneBoards
from loko_testbed.live.emulation.traffic import TrafficLab
from loko_testbed.live.sidecars.program import run_sidecar


async def _run_traffic(lab: TrafficLab) -> None:
    await run_sidecar(lab.run(), lab.set_flows, lab.cause)


async def _run_silent(lab: TrafficLab) -> None:
    await run_sidecar(lab.run(report=lambda _: None), on_fault=lab.cause)


async def _run_alone(boards: LoneBoards) -> None:
    await run_sidecar(boards.run(), on_fault=boards.cause)


def main() -> None:
    """Run the boards of a lab until the standard input is closed."""
    parser = OneLineParser(description="Run the boards of a lab until the standard input is closed.")
    parser.add_argument("lab", help="Name or path of a lab.")
    parser.add_argument("--controller", default="127.0.0.1:6633", help="Address and TCP port.")
    parser.add_argument(
        "--free-control", action="store_true", help="Let messages of the controller cost no time."
    )
    parser.add_argument(
        "--traffic",
        action="store_true",
        help="Cable the boards, and send the flows that the standard input names.",
    )
    chosen = parser.parse_args()
    address = Address.parse(chosen.controller, "--controller")
    lab = load_lab(chosen.lab)
    if chosen.traffic:
        uvloop.run(_run_traffic(TrafficLab(lab, address, free_control=chosen.free_control)))
    elif all(isinstance(switch.profile, Profile) for switch in lab.switches.values()):
        uvloop.run(_run_alone(LoneBoards(lab, address, free_control=chosen.free_control)))
    else:  # other switches are emulated in a network only; its hosts send nothing
        uvloop.run(_run_silent(TrafficLab(lab, address, free_control=chosen.free_control)))


if __name__ == "__main__":
    with user_errors_end(), contextlib.suppress(KeyboardInterrupt):
        main()
