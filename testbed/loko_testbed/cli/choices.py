"""Options that several commands share: scheme, allocation, mix, control traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

import typer
from typer.models import OptionInfo

from loko.admission.protection import MoveTiming, Protection
from loko.admission.schemes import SchemeVariant, expected_mix, scheme_names, takes_target
from loko.control.entries import EVALUATION_ENTRIES
from loko.document import InputError
from loko.switch_model.mix import Mix, load_mix
from loko.switch_model.scenario import OpenFlow
from loko.topology.conditions import has_boards
from loko.topology.lab import Lab
from loko.units import NS_PER_MS

ControlOption = Annotated[
    list[str] | None,
    typer.Option(
        help="What the controller may send to each switch: KIND=PER_SECOND, or KIND=PER_SECONDxBURST, such as"
        " flow-add=10x4; repeat it for several kinds. The kind `unknown` stands for any message, `none` alone"
        " for a silent controller."
    ),
]


OpenFlowOption = Annotated[
    OpenFlow, typer.Option(help="OpenFlow version of the switches: it decides what tables and messages cost.")
]
EntriesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Entries that each flow table is planned for. Default: all that the switch's profile has;"
        f" {EVALUATION_ENTRIES} in a lab with boards, whose CPU compares each frame with every entry.",
    ),
]
AllocationOption = Annotated[
    str | None,
    typer.Option(
        help="How much of a switch is given away: full-rate, fifth-rate, or optimised for an expected mix"
        " (packets: the delay targets). Packets also has joint, which bounds flows from one switch together."
        " Ports has whole-paths, which bounds a path as a whole where the bounds of its ports are too much."
        " Default: as the lab says, else fifth-rate."
    ),
]
ClassesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=7,
        help="Put the flows in so many traffic classes at most, by deadline, that most fit: for switches with"
        " queues. Default: the class of each flow is its traffic_class, or 1.",
    ),
]
MixOption = Annotated[
    str | None,
    typer.Option(help="YAML or JSON of the expected traffic mix, for `optimised`. Default: the lab's."),
]

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="The columns of a CSV file or workbook in order, such as id,source,destination, and - for one to"
        " leave out; or guess, by their headings. Default: as the first row says."
    ),
]
TargetOption = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Delay target of each port, for --scheme ports and mixed, or switch: for packets, mixed, and"
        " loko on simple devices, whose targets otherwise follow the deadlines.",
    ),
]
PCAP_LIMIT_MEGABYTES: Final = 1_000
PcapLimitOption = Annotated[
    int, typer.Option(min=1, metavar="MEGABYTES", help="Room for all captures together.")
]
RobustOption = Annotated[
    bool,
    typer.Option(
        "--robust",
        help="Plan for the worst end of every range in the profiles, so that the guarantees hold for every"
        " device within the ranges (docs/model.md, section 16).",
    ),
]

SurviveOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Plan for failures, one at a time: cables=1 (each cable between switches), switches=1 (each"
        " switch, or cable), or a file of groups that fail together; repeat it for several."
    ),
]
ProtectionOption = Annotated[
    Protection,
    typer.Option(
        help="With --survive: reserve a backup path for each failure, or send every frame twice (1+1)."
    ),
]
DuplicateOption = Annotated[
    list[str] | None,
    typer.Option(help="With --survive: the id of a flow that may lose nothing, so it is sent twice."),
]
DETECTION_MS: Final = 1000.0
DetectionOption = Annotated[
    float,
    typer.Option(
        min=0,
        max=86_400_000,
        help="With --survive: time from a failure until the controller begins to move flows.",
    ),
]
"""In milliseconds; by default `DETECTION_MS`."""
PortDetectionOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=86_400_000,
        help="With --survive: switches have groups of type fast failover (OpenFlow 1.3), and notice within"
        " this time that a port is down. Default: they have none.",
    ),
]
"""In milliseconds."""


def move_timing(*, detect_ms: float, port_detect_ms: float | None, changes_per_s: float) -> MoveTiming:
    """Return the speed of moves after failures that these options state."""
    return MoveTiming(
        detection_ns=detect_ms * NS_PER_MS,
        changes_per_s=changes_per_s,
        port_detection_ns=None if port_detect_ms is None else port_detect_ms * NS_PER_MS,
    )


def refuse_without_survive(
    *,
    duplicate: Sequence[str] | None,
    protection: Protection,
    detect_ms: float,
    port_detect_ms: float | None,
    cut: Sequence[str] | None = None,
) -> None:
    """Raise `InputError` if one of the options is given that go with `--survive`, which is not."""
    options = {
        "--duplicate": bool(duplicate),
        "--protection": protection is not Protection.BACKUP,
        "--detect-ms": detect_ms != DETECTION_MS,
        "--port-detect-ms": port_detect_ms is not None,
        "--cut": bool(cut),
    }
    for option in (option for option, is_given in options.items() if is_given):
        raise InputError(f"{option}: say with --survive which failures the flows are to survive")


def scheme_option(words: str) -> OptionInfo:
    """Return the option that chooses an admission scheme, ours or that of a plug-in. Raises `InputError`."""
    option: OptionInfo = typer.Option(
        help=words, metavar=f"[{'|'.join(scheme_names())}]", autocompletion=scheme_names
    )
    return option


def mix_of(lab: Lab, choice: SchemeVariant, path: str | None) -> Mix | None:
    """Return the mix that the scheme is optimised for, from a file or the lab; None if it needs none."""
    if choice.is_optimised:
        return expected_mix(lab, None if path is None else load_mix(path))
    if path is not None:
        raise InputError("--mix: is for --allocation optimised; give that too, or leave --mix out")
    return None


def refuse_together(options: Mapping[str, bool]) -> None:
    """Refuse options of which more than one is given. Raises `InputError`."""
    if sum(options.values()) > 1:
        raise InputError(f"{', '.join(options)}: give one of them")


def refuse_idle_target(lab: Lab, target_ms: float | None, choices: Iterable[SchemeVariant]) -> None:
    """Refuse a delay target that none of the schemes keeps on the lab's switches. Raises `InputError`."""
    if target_ms is None or any(takes_target(lab, choice) for choice in choices):
        return
    others = "packets or ports" if has_boards(lab) else "loko, with a fixed allocation, or ports"
    raise InputError(f"--target-ms: is for --scheme {others}; give one of them, or leave it out")
