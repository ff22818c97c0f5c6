"""The command `loko serve`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from evaluation.live.background import BackgroundLab
from evaluation.live.network_namespace import inside, namespace_of
from loko.allocation import FIFTH_RATE
from loko.commands.choices import (
    AllocationOption,
    ControlOption,
    MixOption,
    OpenFlowOption,
    mix_of,
)
from loko.control_traffic import CHANGES_PER_S, ControlTraffic, driver_traffic, parse_control
from loko.document import InputError
from loko.entries import EVALUATION_ENTRIES, match_of
from loko.lab import Backend, Lab, load_lab
from loko.scenario import EVALUATION, OpenFlow, of_lokos_tables
from loko.schemes import SchemeName, admission_of, choice_of
from loko.serve.journal import LogFormat, begin_log
from loko.serve.program import Settings, read_token
from loko.serve.program import serve as run


def serve(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    *,
    scheme: Annotated[SchemeName, typer.Option(help="Admission scheme.")] = SchemeName.LOKO,
    allocation: AllocationOption = None,
    mix: MixOption = None,
    target_ms: Annotated[
        float | None, typer.Option(min=0, help="Delay of each switch, for packets. Default: the paper's.")
    ] = None,
    entries: Annotated[
        int, typer.Option(min=1, help="Most entries in each flow table.")
    ] = EVALUATION_ENTRIES,
    fillers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of these, entries that no frame hits. With few entries frames bunch, for which --scheme"
            " packets must allow. Default: as the lab says, else 0.",
        ),
    ] = None,
    frame_bytes: Annotated[
        list[int] | None,
        typer.Option(help="Frame size; repeat it for several. Default: the evaluation's 306."),
    ] = None,
    changes_per_s: Annotated[
        float,
        typer.Option(min=0, help="Changes per second at each switch; 0: no limit, and nothing reserved."),
    ] = CHANGES_PER_S,
    control: ControlOption = None,
    rest: Annotated[str, typer.Option(help="Where to listen for REST.")] = "127.0.0.1:8080",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Host name that requests may use, beside the address; repeat it for several."),
    ] = None,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    listen: Annotated[str, typer.Option(help="Where to listen for switches.")] = "127.0.0.1:6633",
    store: Annotated[Path | None, typer.Option(help="Database. Default: results/serve/LAB.sqlite.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Token for calls that change something. Also: $LOKO_TOKEN.")
    ] = None,
    requests_per_s: Annotated[float, typer.Option(min=1, help="Limit for each client.")] = 1000.0,
    connections: Annotated[
        int, typer.Option(min=16, help="Limit for all clients; half of it for one.")
    ] = 512,
    delete_strangers: Annotated[
        bool, typer.Option("--delete-strangers", help="Delete entries that others made in the switches.")
    ] = False,
    framework: Annotated[str, typer.Option(help="OpenFlow framework: os-ken or ryu.")] = "os-ken",
    framework_python: Annotated[
        str | None, typer.Option(help="Interpreter that has the framework. Default: this one.")
    ] = None,
    backend: Annotated[Backend | None, typer.Option(help="Backend of every switch.")] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Also run emulated boards; needs no root.")
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option(
            "--traffic", help="With --emulate or --live: hosts send the worst that their flows may."
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Serve the lab that 'loko lab up' has started."),
    ] = False,
    free_control: Annotated[
        bool, typer.Option("--free-control", help="With --emulate: control messages cost no time.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every flow and request.")] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="Lines for people, or JSON for programs.")
    ] = LogFormat.TEXT,
) -> None:
    """Serve a lab: admit flows over REST and keep them in its switches. Ends on SIGTERM or Ctrl-C.

    Granted flows survive a restart, whatever caused it.

    Example: loko serve two-switch --emulate --traffic
    """
    begin_log(log_format, verbose=verbose)
    network = load_lab(lab).with_backend(backend)
    choice = choice_of(network, scheme, allocation)
    if not choice.lets_flows_go:
        raise InputError(
            f"--allocation {allocation}: works only for flows that stay; leave it out, or use 'loko plan'"
        )
    expected = mix_of(network, choice, mix)
    expected_sizes = () if expected is None else expected.frame_bytes
    sizes = tuple(sorted({*(frame_bytes or expected_sizes or EVALUATION.frame_bytes), *expected_sizes}))
    scenario = of_lokos_tables(
        entries=entries, packet_sizes_bytes=sizes, openflow=openflow, match=match_of(network)
    )
    reserved = _reserved(changes_per_s, parse_control(control or ()))
    fillers = network.fillers if fillers is None else fillers
    allocated = choice.allocation or FIFTH_RATE.name
    options = {
        "scheme": scheme.value,
        "allocation": allocated if expected is None else f"{allocated} for mix {expected.digest}",
        "target-ms": str(target_ms),
        "entries": str(entries),
        "fillers": str(fillers),
        "frame-bytes": ",".join(map(str, sizes)),
        "changes-per-s": f"{changes_per_s:g}",
        "control": ",".join(sorted(control or [])),
        "openflow": openflow.value,
    }
    if live and emulate:
        raise InputError("--live: the lab has its boards already; leave --emulate out")
    if traffic and not (emulate or live):
        raise InputError(
            "--traffic: there are no hosts; add --emulate, or --live for those of a lab that is up"
        )
    companion = None
    if emulate:
        companion = _boards(network, free_control=free_control, traffic=traffic)
    elif live:
        companion = _taps(network, traffic=traffic)
    target_ns = None if target_ms is None else target_ms * 1e6
    settings = Settings(
        lab=network,
        admission=admission_of(
            network,
            choice,
            scenario,
            mix=expected,
            traffic=reserved,
            target_ns=target_ns,
            fillers=fillers,
        ),
        options=options,
        store=store or Path("results") / "serve" / f"{network.name}.sqlite",
        rest=rest,
        allow_hosts=tuple(allow_host or ()),
        listen=listen,
        openflow=openflow,
        framework=framework,
        framework_python=framework_python,
        token=read_token(token_file),
        requests_per_s=requests_per_s,
        connections=connections,
        changes_per_s=changes_per_s,
        fillers=fillers,
        delete_strangers=delete_strangers,
        openflow_place=_place_of(network) if live else nullcontext,
        companion=companion,
        measures="the hosts' interfaces" if live else "emulated hosts" if traffic else None,
    )
    run(settings)


def _reserved(changes_per_s: float, others: ControlTraffic) -> ControlTraffic:
    """What the driver sends, and whatever else is said to be sent. Raises `InputError` for less."""
    own = driver_traffic(changes_per_s)
    for kind in own.keys() & others.keys():
        if others[kind].per_s < own[kind].per_s:
            raise InputError(
                f"--control {kind.value}={others[kind].per_s:g}: the driver sends up to"
                f" {own[kind].per_s:g}/s; reserve at least that, leave it out, or lower --changes-per-s"
            )
    return {**own, **others}


def _place_of(lab: Lab) -> Callable[[], AbstractContextManager[None]]:
    running = BackgroundLab.find(lab.name)
    if running is None:
        raise InputError(
            f"--live: lab {lab.name} is not up; start it without a controller:"
            f" sudo loko lab up {lab.name} --flows no-flows.yml, a file with the line []"
        )
    return lambda: inside(namespace_of(running.pid))


def _boards(lab: Lab, *, free_control: bool, traffic: bool) -> Callable[[str], Sequence[str]]:
    def command(controller: str) -> Sequence[str]:
        words = [sys.executable, "-m", "evaluation.emulation", str(lab.path), "--controller", controller]
        if free_control:
            words.append("--free-control")
        if traffic:
            words.append("--traffic")
        return words

    return command


def _taps(lab: Lab, *, traffic: bool) -> Callable[[str], Sequence[str]]:
    words = [sys.executable, "-m", "evaluation.live.watching", str(lab.path)]
    return lambda _: [*words, "--traffic"] if traffic else words
