"""Run emulated boards of a lab, in a process of their own.

python -m evaluation.emulation two-switch --controller 127.0.0.1:6633
"""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
import uvloop

from evaluation.emulation.boards import run_alone
from evaluation.emulation.traffic import TrafficLab
from evaluation.sidecars.program import run_sidecar
from loko.address import Address
from loko.commands.choices import wrong_input_ends
from loko.lab import load_lab


async def _run_traffic(lab: TrafficLab) -> None:
    await run_sidecar(lab.run(), lab.set_flows)


def main(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab.")],
    *,
    controller: Annotated[str, typer.Option(help="Address and TCP port.")] = "127.0.0.1:6633",
    free_control: Annotated[
        bool, typer.Option("--free-control", help="Let messages of the controller cost no time.")
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option("--traffic", help="Cable the boards, and send the flows that the standard input names."),
    ] = False,
) -> None:
    """Run the boards of a lab until the standard input is closed."""
    with wrong_input_ends(), contextlib.suppress(KeyboardInterrupt):
        address = Address.parse(controller, "--controller")
        network = load_lab(lab)
        if traffic:
            uvloop.run(_run_traffic(TrafficLab(network, address, free_control=free_control)))
        else:
            uvloop.run(run_sidecar(run_alone(network, address, free_control=free_control)))


if __name__ == "__main__":
    typer.run(main)
