"""The command `loko serve`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from loko.admission import Admission, Terms
from loko.admission.port_queues.device import planned_entries
from loko.admission.protection import ProtectedAdmission, Protection, failures_of
from loko.admission.schemes import (
    SchemeName,
    SchemeVariant,
    admission_of,
    conditions_of,
    default_scheme,
    refuse_one_class,
    reserved_of,
    scheme_name,
    scheme_versions,
    variant_of,
)
from loko.control.dialect import refuse_without_openflow
from loko.control.entries import default_entries, match_of
from loko.document import InputError
from loko.service.admitter import SchemeAdmitter
from loko.service.flow_manager import WAIT_TO_RESTORE_NS
from loko.service.journal import LogFormat, begin_log
from loko.service.outcome import ReturnMode
from loko.service.program import ServiceSettings, migration_of, read_tls, read_token
from loko.service.program import serve as run
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.slots import ServedSchedule, SlotAdmitter, load_served
from loko.switch_model.allocation import FIFTH_RATE
from loko.switch_model.control_traffic import (
    CHANGES_PER_S,
    COMPARISON_S,
    describe,
    driver_traffic,
    parse_control,
    served_traffic,
)
from loko.switch_model.scenario import EVALUATION, OpenFlow, loko_scenario
from loko.terminal import tell
from loko.topology.frame_sizes import DeclaredSize, declared_sizes, parse_size
from loko.topology.lab import Backend, Lab, load_lab
from loko.units import NS_PER_MS, NS_PER_S
from loko_testbed.cli.choices import (
    AllocationOption,
    ControlOption,
    EntriesOption,
    MixOption,
    OpenFlowOption,
    RobustOption,
    mix_of,
    refuse_idle_target,
    scheme_option,
)
from loko_testbed.cli.for_programs import print_csv, print_json, refuse_both
from loko_testbed.instruments.network_namespace import inside, namespace_of
from loko_testbed.live.background import BackgroundLab
from loko_testbed.live.emulation.boards import check_switches
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, WantedFlow, load_schedule
from loko_testbed.reproduce.schedule_check.incremental import IncrementalCheck
from loko_testbed.reproduce.schedule_check.verdict import check


def serve(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    *,
    schedule: Annotated[
        Path | None,
        typer.Option(
            help="Give slots instead of admitting: a schedule from 'loko schedule --json', whose flows are"
            " installed when the store begins. Further flows get free slots; nobody is moved."
        ),
    ] = None,
    scheme: Annotated[
        str | None,
        scheme_option(
            "Admission scheme. Default: ports where all switches have queues for it, mixed where only some"
            " have, else loko."
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline", help="Serve a baseline for comparison: silo or qjump. It guarantees nothing here."
        ),
    ] = False,
    allocation: AllocationOption = None,
    mix: MixOption = None,
    target_ms: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Delay target of each port, for ports and mixed, or switch, for packets, mixed and loko"
            " (simple devices).",
        ),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=7,
            help="Traffic classes that flows may have, at switches with a queue for each. Default: 1, or as"
            " many as --class-target-ms names.",
        ),
    ] = None,
    class_target_ms: Annotated[
        list[str] | None,
        typer.Option(
            help="Delay target of each port for a traffic class, such as 2=20; repeat it for several."
            " Default: for the highest class --target-ms, for others the time in which a full queue drains."
        ),
    ] = None,
    entries: EntriesOption = None,
    padding: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of these, entries that no frame hits. With few entries frames bunch, for which --scheme"
            " packets must allow. Default: as the lab says, else 0.",
        ),
    ] = None,
    frame_bytes: Annotated[
        list[str] | None,
        typer.Option(
            help="Frame size; repeat it for several. 1500@h1,h2: only between these hosts, so that switches"
            " which such frames cannot reach are planned without. Default: the evaluation's 306."
        ),
    ] = None,
    changes_per_s: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Changes per second at each switch; 0: no limit, and nothing reserved. Default:"
            f" {CHANGES_PER_S:g}.",
        ),
    ] = None,
    compare_s: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Read the entries of short tables back this often, which is reserved for; 0: never. Default:"
            f" {COMPARISON_S:g}.",
        ),
    ] = None,
    control: ControlOption = None,
    robust: RobustOption = False,
    reroute: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Move flows to another path if a cable of theirs has had no link for so many seconds, and"
            " that keeps their promise. Default: they wait for the cable.",
        ),
    ] = None,
    survive: Annotated[
        list[str] | None,
        typer.Option(
            help="Admit only flows that survive any failure of one cable (cables=1), one switch or cable"
            " (switches=1) or one group of a file; repeat it for several."
        ),
    ] = None,
    protection: Annotated[
        Protection | None,
        typer.Option(
            help="With --survive: reserve backup paths (default), or send every frame twice (1+1), for flows"
            " whose request does not choose."
        ),
    ] = None,
    return_: Annotated[
        ReturnMode | None,
        typer.Option(
            "--return",
            help="With --survive: when flows return to their working path after a repair: automatic, when it"
            f" has been intact for {WAIT_TO_RESTORE_NS // NS_PER_S} s (default), or by-call.",
        ),
    ] = None,
    rest: Annotated[str, typer.Option(help="Where to listen for REST.")] = "127.0.0.1:8080",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Host name that requests may use, beside the address; repeat it for several."),
    ] = None,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    listen: Annotated[str, typer.Option(help="Where to listen for switches.")] = "127.0.0.1:6633",
    tls_listen: Annotated[
        str | None, typer.Option(help="Where to listen for switches that use TLS. Default: nowhere.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="With --tls-listen: the controller's certificate (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="With --tls-listen: its private key (PEM).")] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(help="With --tls-listen: certificate of the authority that signs the switches' (PEM)."),
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Database. Default: results/serve/LAB.sqlite.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Token for calls that change something. Also: $LOKO_TOKEN.")
    ] = None,
    requests_per_s: Annotated[float, typer.Option(min=1, help="Limit for each client.")] = 1000.0,
    connections: Annotated[
        int, typer.Option(min=16, help="Limit for all clients; half of it for one.")
    ] = 512,
    delete_foreign_entries: Annotated[
        bool,
        typer.Option("--delete-foreign-entries", help="Delete entries that others made in the switches."),
    ] = False,
    framework: Annotated[str, typer.Option(help="OpenFlow framework: os-ken or ryu.")] = "os-ken",
    framework_python: Annotated[
        str | None, typer.Option(help="Interpreter that has the framework. Default: this one.")
    ] = None,
    backend: Annotated[Backend | None, typer.Option(help="Backend of every switch.")] = None,
    cabling: Annotated[
        Path | None,
        typer.Option(help="Which switches are real boards: these connect from their ip_address only."),
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Also run emulated switches; needs no root.")
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option(
            "--traffic",
            help="With --emulate or --live: hosts send the worst that their flows may, or in their slots.",
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Serve the lab that 'loko lab up' has started."),
    ] = False,
    free_control: Annotated[
        bool, typer.Option("--free-control", help="With --emulate: control messages cost no time.")
    ] = False,
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate",
            help="Show what becomes of the stored flows if they are served like this: in another lab, with"
            " other profiles or options. Status 1 if a promise breaks.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --migrate: switch over, whatever breaks, and serve.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --migrate: print JSON.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="With --migrate: print CSV, a line for each flow.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every flow and request.")] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="Lines for people, or JSON for programs.")
    ] = LogFormat.TEXT,
) -> None:
    """Serve a lab: admit flows over REST and keep them in its switches. Ends on SIGTERM or Ctrl-C.

    Granted flows survive a restart, whatever caused it. With --schedule, flows get slots instead.

    Example: loko serve two-switch --emulate --traffic
    """
    begin_log(log_format, verbose=verbose)
    if (yes or as_json or as_csv) and not migrate:
        raise InputError("--yes, --json, --csv: go with --migrate; add it, or leave them out")
    refuse_both(as_json=as_json, as_csv=as_csv)
    network = load_lab(lab, cabling).with_backend(backend)
    for switch in network.switches.values():
        refuse_without_openflow(switch)
    of_admission = _AdmissionOptions(
        scheme=scheme,
        baseline=baseline or None,
        allocation=allocation,
        mix=mix,
        target_ms=target_ms,
        classes=classes,
        class_target_ms=class_target_ms,
        entries=entries,
        padding=padding,
        frame_bytes=frame_bytes,
        changes_per_s=changes_per_s,
        compare_s=compare_s,
        control=control,
        robust=robust or None,
        survive=tuple(survive) if survive else None,
        protection=protection,
    )
    if return_ is not None and not survive:
        raise InputError("--return: no flow leaves its working path; add --survive, or leave it out")
    if survive and reroute is not None:
        raise InputError("--reroute: with --survive, flows move to reserved paths at once; leave it out")
    if schedule is not None and reroute is not None:
        raise InputError("--reroute: hosts were told their slots, so flows cannot be moved; leave it out")
    if schedule is None:
        granted = _by_admission(network, of_admission, openflow)
    else:
        granted = _by_slots(network, schedule, openflow, of_admission._asdict())
    if live and emulate:
        raise InputError("--live: the lab has its boards already; leave --emulate out")
    if emulate and (real := network.behind(Backend.HARDWARE)):
        raise InputError(f"--emulate: {real[0].name} is a real board; leave --emulate or --cabling out")
    if traffic and not (emulate or live):
        raise InputError(
            "--traffic: there are no hosts; add --emulate, or --live for those of a lab that is up"
        )
    sidecar = None
    if emulate:
        check_switches(network, openflow)
        sidecar = _boards(network, free_control=free_control, traffic=traffic)
    elif live:
        sidecar = _taps(network, traffic=traffic)
    settings = ServiceSettings(
        lab=network,
        admitter=granted.admitter,
        terms=granted.terms,
        options=granted.options,
        store=store or Path("results") / "serve" / f"{network.name}.sqlite",
        rest=rest,
        allow_hosts=tuple(allow_host or ()),
        listen=listen,
        tls_listen=tls_listen,
        tls_files=read_tls(tls_listen, certificate=tls_cert, key=tls_key, authority=tls_ca),
        openflow=openflow,
        framework=framework,
        framework_python=framework_python,
        token=read_token(token_file),
        requests_per_s=requests_per_s,
        connections=connections,
        changes_per_s=granted.changes_per_s,
        compare_s=granted.compare_s,
        reroute_s=reroute,
        returns=return_ or ReturnMode.AUTOMATIC,
        padding=granted.padding,
        delete_foreign_entries=delete_foreign_entries,
        openflow_place=_place_of(network) if live else nullcontext,
        sidecar=sidecar,
        emulates=emulate,
        measures="the hosts' interfaces" if live else "emulated hosts" if traffic else None,
        log_format=log_format,
        verbose=verbose,
    )
    run(_migrated(settings, yes=yes, as_json=as_json, as_csv=as_csv) if migrate else settings)


_MIGRATED: Final = (
    *("id", "fate", "text", "promised_ns", "deadline_ns", "guarantee_ns"),
    *("path_before", "path"),
)
"""Columns of the flows of a migration."""


def _migrated(settings: ServiceSettings, *, yes: bool, as_json: bool, as_csv: bool) -> ServiceSettings:
    """Show what a migration does. Return the settings for it, or end the program if it is not wanted yet."""
    migration = migration_of(settings)
    if as_json:
        print_json({"store": str(settings.store), **migration.values()})
    elif as_csv:
        rows = (flow.values() for flow in migration.flows)
        print_csv(
            _MIGRATED,
            ({**row, **{key: " ".join(row[key]) for key in ("path_before", "path")}} for row in rows),
        )
    else:
        for line in migration.lines():
            tell(line)
    if yes:
        return replace(settings, migration=migration)
    if not (as_json or as_csv):
        tell("nothing is changed; stop what sends the flows that break, then add --yes to switch over")
    raise typer.Exit(1 if migration.breaking else 0)


class _AdmissionOptions(NamedTuple):
    """Options for admission schemes only, as given on the command line; None where left out."""

    scheme: str | None
    baseline: bool | None
    allocation: str | None
    mix: str | None
    target_ms: float | None
    classes: int | None
    class_target_ms: list[str] | None
    entries: int | None
    padding: int | None
    frame_bytes: list[str] | None
    changes_per_s: float | None
    compare_s: float | None
    control: list[str] | None
    robust: bool | None
    survive: tuple[str, ...] | None
    protection: Protection | None


class _Granted(NamedTuple):
    """The admission of flows, and the settings that follow from that choice."""

    admitter: SchemeAdmitter | SlotAdmitter
    terms: Terms
    options: dict[str, str]
    changes_per_s: float
    compare_s: float
    padding: int


def _by_admission(lab: Lab, given: _AdmissionOptions, openflow: OpenFlow) -> _Granted:
    lab = lab.robust() if given.robust else lab
    scheme = default_scheme(lab) if given.scheme is None else scheme_name(given.scheme)
    _refuse_baseline(SchemeVariant(scheme=scheme), is_wanted=bool(given.baseline))
    entries = default_entries(lab) if given.entries is None else given.entries
    if given.protection is not None and not given.survive:
        raise InputError("--protection: say with --survive which failures flows are to survive")
    if given.survive and given.baseline:
        raise InputError(f"--survive: {scheme} is a baseline, which guarantees nothing; leave it out")
    if given.survive and given.changes_per_s == 0:
        raise InputError("--changes-per-s 0: reserves no time to move flows; leave it or --survive out")
    changes_per_s = CHANGES_PER_S if given.changes_per_s is None else given.changes_per_s
    compare_s = COMPARISON_S if given.compare_s is None else given.compare_s
    choice = variant_of(lab, scheme, given.allocation)
    refuse_idle_target(lab, given.target_ms, [choice])
    if not choice.supports_release:
        raise InputError(f"{choice.option}: works only for flows that stay; leave it out, or use 'loko plan'")
    class_targets_ns = _class_targets_ns(given.class_target_ms or ())
    classes = max([1, *class_targets_ns]) if given.classes is None else given.classes
    if classes > 1 or class_targets_ns:
        asked = "--class-target-ms" if class_targets_ns else f"{classes} traffic classes"
        refuse_one_class(lab, choice, asked)
    if 1 in class_targets_ns and given.target_ms is not None and scheme == SchemeName.PORTS:
        raise InputError("--class-target-ms 1=…: --target-ms says the target of class 1; leave one out")
    if class_targets_ns and max(class_targets_ns) > classes:
        raise InputError(
            f"--class-target-ms {max(class_targets_ns)}=…: there is no such class; give --classes"
            f" {max(class_targets_ns)}, or leave it out"
        )
    expected = mix_of(lab, choice, given.mix)
    declared = {DeclaredSize(size) for size in (() if expected is None else expected.frame_bytes)}
    declared |= {parse_size(text, lab) for text in given.frame_bytes or ()}
    declared = declared or {DeclaredSize(size) for size in EVALUATION.frame_bytes}
    scenario = loko_scenario(
        entries=entries,
        packet_sizes_bytes=tuple(size.frame_bytes for size in declared),
        openflow=openflow,
        match=match_of(lab),
        sizes_at=declared_sizes(lab, declared),
    )
    padding = lab.padding if given.padding is None else given.padding
    allocated = choice.allocation or FIFTH_RATE.name
    traffic = served_traffic(changes_per_s, parse_control(given.control or ()), compare_s=compare_s)

    def make_admission() -> Admission:
        return admission_of(
            lab,
            choice,
            scenario,
            mix=expected,
            traffic=traffic,
            target_ns=None if given.target_ms is None else given.target_ms * NS_PER_MS,
            padding=padding,
            classes=classes,
            class_targets_ns=class_targets_ns,
        )

    admitter: SchemeAdmitter
    if given.survive is None:
        admitter = SchemeAdmitter(lab, make_admission())
    else:
        failures = failures_of(lab, given.survive)
        protected = ProtectedAdmission(lab, make_admission, failures)
        admitter = ProtectedAdmitter(lab, protected, given.protection or Protection.BACKUP)
    options = {
        "scheme": str(scheme),
        "allocation": allocated if expected is None else f"{allocated} for mix {expected.digest}",
        "target-ms": str(given.target_ms),
        "entries": ",".join(map(str, sorted(set(planned_entries(lab, entries).values())))),
        "padding": str(padding),
        "frame-bytes": ",".join(map(str, sorted(declared))),
        "changes-per-s": f"{changes_per_s:g}",
        "control": ",".join(sorted(given.control or [])),
        "openflow": openflow.value,
        "robust": "yes" if given.robust else "no",
        **({"compare-s": f"{compare_s:g}"} if compare_s else {}),
        **({"classes": str(classes)} if classes > 1 else {}),
        **({"class-target-ms": _in_words(class_targets_ns)} if class_targets_ns else {}),
        **({"survive": ",".join(sorted(given.survive))} if given.survive else {}),
        **scheme_versions([scheme]),
    }
    terms = Terms(
        lab=lab,
        reserved=reserved_of(lab, choice, traffic),
        entries=planned_entries(lab, entries),
        padding=padding,
        openflow=openflow,
    )
    return _Granted(admitter, terms, options, changes_per_s, compare_s, padding)


def _class_targets_ns(texts: Sequence[str]) -> dict[int, float]:
    """Read the delay targets of traffic classes, each as `class=milliseconds`. Raises `InputError`."""
    targets_ns: dict[int, float] = {}
    for text in texts:
        words = re.fullmatch(r"([1-7])=([0-9]{1,6}(?:\.[0-9]+)?)", text)
        if words is None or int(words[1]) in targets_ns:
            why = "is no class with a target below 1000000" if words is None else "names a class again"
            raise InputError(f"--class-target-ms {text}: {why}; give each class once, such as 2=20")
        targets_ns[int(words[1])] = float(words[2]) * NS_PER_MS
    return targets_ns


def _in_words(targets_ns: Mapping[int, float]) -> str:
    """Return the targets so that two services with the same words promise the same."""
    return ",".join(f"{each}={target_ns / NS_PER_MS:.15g}" for each, target_ns in sorted(targets_ns.items()))


def _refuse_baseline(choice: SchemeVariant, *, is_wanted: bool) -> None:
    """Raise `InputError` for a scheme that guarantees nothing here, unless that is what is wanted."""
    name = choice.scheme
    if choice.is_baseline and not is_wanted:
        raise InputError(
            f"--scheme {name}: is a baseline, {conditions_of(choice).baseline};"
            " add --baseline to serve it all the same, or choose another scheme"
        )
    if is_wanted and not choice.is_baseline:
        raise InputError(f"--baseline: scheme {name} is none; leave it out, or give --scheme silo or qjump")


def _by_slots(lab: Lab, file: Path, openflow: OpenFlow, others: Mapping[str, object]) -> _Granted:
    """Grant slots of a schedule. Raises `InputError` if any of the `others`, which do not apply, is given."""
    for name, value in others.items():
        if value is not None:
            raise InputError(
                f"--{name.replace('_', '-')}: is of admission control; the schedule decides; leave it or"
                " --schedule out"
            )
    served = load_served(file, lab)
    document = load_schedule(file)
    slots = SlotAdmitter(lab, served, openflow=openflow, checker=IncrementalCheck(lab, document))
    _refuse_refuted(lab, file, document.model_copy(update={"openflow": openflow}), served)
    options = {
        "scheme": slots.scheme,
        "schedule": slots.digest,
        "entries": str(served.table_entries),
        "frame-bytes": ",".join(map(str, slots.incremental.sizes)),
        "changes-per-s": f"{served.changes_per_s:g}",
        "openflow": openflow.value,
    }
    terms = Terms(
        lab=lab,
        reserved=describe(driver_traffic(served.changes_per_s)),
        entries=dict.fromkeys(lab.switches, served.table_entries),
        padding=0,
        openflow=openflow,
    )
    return _Granted(slots, terms, options, served.changes_per_s, 0.0, 0)


def _refuse_refuted(lab: Lab, file: Path, document: ScheduleDocument, served: ServedSchedule) -> None:
    """Raise `InputError` if the checker refutes a schedule, whoever made it or changed it since."""
    wanted = [
        WantedFlow.model_validate({**flow.model_dump(), "period_us": flow.send.period_us})
        for flow in served.scheduled
    ]
    # Nothing is known of flows without slots, other than their names.
    verdict = check(lab, wanted, document.model_copy(update={"unscheduled": []}))
    if verdict.refutations:
        raise InputError(f"--schedule {file}: refuted: {verdict.refutations[0]}; schedule anew")


def _place_of(lab: Lab) -> Callable[[], AbstractContextManager[None]]:
    running = BackgroundLab.find(lab.name)
    if running is None:
        raise InputError(
            f"--live: lab {lab.name} is not up; start it without a controller:"
            f" sudo loko lab up {lab.name} --no-controller"
        )
    status = running.status()
    if not status.awaits_controller:
        raise InputError(
            f"--live: the switches of lab {lab.name} have another controller, {status.controller};"
            f" end the lab (sudo loko lab down {lab.name}) and start it without one:"
            f" sudo loko lab up {lab.name} --no-controller"
        )
    return lambda: inside(namespace_of(running.pid))


def _boards(lab: Lab, *, free_control: bool, traffic: bool) -> Callable[[str], Sequence[str]]:
    def command(controller: str) -> Sequence[str]:
        words = [
            sys.executable,
            "-m",
            "loko_testbed.live.emulation",
            str(lab.path),
            "--controller",
            controller,
        ]
        if free_control:
            words.append("--free-control")
        if traffic:
            words.append("--traffic")
        return words

    return command


def _taps(lab: Lab, *, traffic: bool) -> Callable[[str], Sequence[str]]:
    words = [sys.executable, "-m", "loko_testbed.live.host_taps", str(lab.path)]
    return lambda _: [*words, "--traffic"] if traffic else words
