"""Diagnoses of a machine for live results. A pure function: facts in, diagnoses out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loko_testbed.live.doctor.facts import Adapter, Clocks, Cores, Facts, Noise, Requirement

UNDER_WAY_NS: Final = 4_130_000
"""Longest time that a packet of figure 17 may take to keep its guarantee (Loko, section 6.1)."""

MOST_EXCUSED: Final = 0.05
"""With stalls over a larger share of time, a run says little: too many late packets are excused."""

SLOW_CLOCK_NS: Final = 300.0
"""A slower clock is read by a system call or from a device; the emulator reads it in every pass."""

LARGEST_STEP_NS: Final = 20_000
"""A wall clock that is set by more spoils delays. Less may be the spread of reading two clocks."""

MOST_STEAL: Final = 0.01


class Level(StrEnum):
    """How much a diagnosis matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing, but live results can be trusted."""
    DOUBTFUL = "doubtful"
    """Live runs work, but their delays say too little about the switches."""
    MISSING = "missing"
    """Live runs are impossible without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One line of the doctor's output."""

    what: str
    level: Level
    found: str
    means: str = ""
    """Its meaning for live results."""
    change: str = ""
    """The change that would mend it."""


def trusted(diagnoses: Sequence[Diagnosis]) -> bool:
    """Return whether live runs are possible here, with delays that are those of the switches."""
    return all(diagnosis.level in (Level.OK, Level.NOTE) for diagnosis in diagnoses)


def judge(facts: Facts) -> list[Diagnosis]:
    """Return one diagnosis for each thing that matters for live results."""
    return [
        _root(facts),
        *map(_part, facts.parts),
        *_cores(facts.cores),
        _deadline(facts.deadline),
        *_clocks(facts.clocks),
        _noise(facts),
        _steal(facts),
        _load(facts),
        *map(_adapter, facts.adapters),
        *_versions(facts),
    ]


def _root(facts: Facts) -> Diagnosis:
    if facts.root:
        return _ok("root", "yes")
    means = "no live run: namespaces, token buckets and real-time scheduling need it"
    return _missing("root", "no", means, "repeat with sudo")


def _part(part: Requirement) -> Diagnosis:
    if part.there:
        return _ok(part.name, part.found or "works")
    state = "missing" if part.there is False else "not tried without root"
    if part.backends:
        means = f"--backend {' or '.join(part.backends)} is not possible or not complete"
        return Diagnosis(what=part.name, level=Level.NOTE, found=state, means=means, change=part.change)
    return _missing(part.name, state, "no live run", part.change)


def _cores(cores: Cores) -> Iterator[Diagnosis]:
    state = f"{cores.usable} usable, the emulator on {cores.emulator}"
    if cores.emulator_alone:
        yield _ok("cores", state)
    else:
        means = "emulator, traffic and taps take each other's time: stalls are part of every delay"
        yield _doubtful("cores", state, means, "give the machine a second core")
    if cores.siblings:
        siblings = ", ".join(map(str, cores.siblings))
        means = "what runs there slows the emulator: departures up to some us late"
        yield _note(
            "core's siblings",
            siblings,
            means,
            "switch SMT off: echo off >/sys/devices/system/cpu/smt/control",
        )
    if cores.isolated:
        yield _ok("core isolated", "yes")
    else:
        change = (
            f"add 'isolcpus={cores.emulator} nohz_full={cores.emulator}' to GRUB_CMDLINE_LINUX in"
            " /etc/default/grub, run update-grub, restart the machine"
        )
        yield _note(
            "core isolated", "no", "other programs and the kernel's tick interrupt the emulator", change
        )
    if cores.governor not in (None, "performance"):
        means = "the core slows down when idle: departures some us late"
        yield _note("frequency governor", str(cores.governor), means, "cpupower frequency-set -g performance")


def _deadline(deadline: bool | None) -> Diagnosis:
    what = "SCHED_DEADLINE"
    if deadline:
        return _ok(what, "the emulator gets a whole core")
    if deadline is None:
        return _note(what, "not tried without root", "the emulator's stalls depend on it", "repeat with sudo")
    means = "the emulator runs like any program: stalls of milliseconds, tens of them under load"
    change = "use a kernel that offers it; in a container, add the capability SYS_NICE"
    return _doubtful(what, "refused", means, change)


def _clocks(clocks: Clocks) -> Iterator[Diagnosis]:
    state = f"{clocks.source}, read in {clocks.read_ns:.0f} ns"
    if clocks.read_ns <= SLOW_CLOCK_NS:
        yield _ok("clock", state)
    else:
        means = "each pass of the emulator waits for the clock: departures late, fewer boards on a core"
        change = "use clocksource=tsc (or the hypervisor's own); an unstable TSC shows in dmesg"
        yield _doubtful("clock", state, means, change)
    state = f"set by {abs(clocks.step_ns) / 1e3:.1f} us meanwhile"
    if abs(clocks.step_ns) <= LARGEST_STEP_NS:
        yield _ok("wall clock", state)
    else:
        means = "packets are stamped with a clock that is being set: delays are wrong by as much"
        yield _doubtful("wall clock", state, means, "wait until NTP has settled, or stop it during runs")


def _noise(facts: Facts) -> Diagnosis:
    what, noise = "CPU noise", facts.noise
    if noise is None:
        means = "unknown how often the host, not the switch, delays packets"
        return _doubtful(what, f"not measured: {facts.no_noise}", means, "mend that, then repeat")
    share = noise.excused_share(UNDER_WAY_NS)
    state = (
        f"{len(noise.stalls)} stalls above {noise.threshold_ns / 1e3:.0f} us in "
        f"{noise.duration_ns / 1e9:.0f} s, the worst {noise.worst_ns / 1e3:.0f} us; "
        f"{_percent(share)} of packets would meet one"
    )
    if share <= MOST_EXCUSED:
        return _ok(what, state)
    means = f"so many late packets would be excused; at most {_percent(MOST_EXCUSED)} leaves a verdict"
    return _doubtful(what, state, means, _quieter(noise, facts))


def _quieter(noise: Noise, facts: Facts) -> str:
    if not noise.scheduling.startswith("deadline"):
        return "let the emulator have SCHED_DEADLINE (see there)"
    if facts.load >= facts.cores.usable / 2:
        return "end the other programs (see load), then repeat"
    if facts.virtual_machine:
        return "pin the virtual machine's processors on an idle host, or use real hardware"
    return "isolate the emulator's core (see there); look for interrupts in /proc/interrupts"


def _steal(facts: Facts) -> Diagnosis:
    share = facts.steal_share
    where = "virtual machine" if facts.virtual_machine else "real hardware"
    if share is None or share <= MOST_STEAL:
        told = "" if share is None else f", {_percent(share)} of the time taken by the hypervisor"
        return _ok("hypervisor", where + told)
    means = "the hypervisor runs others on these processors: stalls that nothing in here can avoid"
    return _doubtful(
        "hypervisor", f"{where}, {_percent(share)} taken", means, "use an idle host, or pin processors"
    )


def _load(facts: Facts) -> Diagnosis:
    state = f"{facts.load:.1f} programs on {facts.cores.usable} cores in the minute before"
    if facts.load < facts.cores.usable / 2:
        return _ok("load", state)
    change = "end them ('top' shows which), wait a minute, then repeat"
    if facts.load <= facts.cores.usable:
        return _note("load", state, "other programs take the lab's time: more stalls", change)
    means = "there are fewer cores than programs: senders, controller and taps wait, as no stall tells"
    return _doubtful("load", state, means, change)


def _adapter(adapter: Adapter) -> Diagnosis:
    what, unknown = f"card {adapter.name}", "unknown (ethtool cannot tell)"
    offloads = unknown if adapter.offloads is None else ", ".join(adapter.offloads) or "none"
    stamps = unknown if adapter.hardware_stamps is None else "yes" if adapter.hardware_stamps else "no"
    state = f"{adapter.driver}; offloads {offloads}; stamps in hardware {stamps}"
    meanings, changes = [], []
    if adapter.offloads:
        meanings.append("frames are merged or cut before a tap sees them")
        changes.append(f"for real boards: ethtool -K {adapter.name} gro off gso off tso off")
    if not adapter.hardware_stamps:
        meanings.append("stamps of real boards' frames are the kernel's: off by microseconds to tens of them")
        changes.append("use a card with a hardware clock for taps")
    if not meanings:
        return _ok(what, state)
    return _note(what, state, "emulated boards: nothing. " + "; ".join(meanings), "; ".join(changes))


def _versions(facts: Facts) -> Iterator[Diagnosis]:
    yield _ok("kernel", facts.kernel)
    yield _ok(
        "versions", ", ".join(f"{name} {version}" for name, version in facts.versions.items()) or "none"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ok(what: str, state: str) -> Diagnosis:
    return Diagnosis(what=what, level=Level.OK, found=state)


def _note(what: str, state: str, means: str, change: str) -> Diagnosis:
    return Diagnosis(what=what, level=Level.NOTE, found=state, means=means, change=change)


def _doubtful(what: str, state: str, means: str, change: str) -> Diagnosis:
    return Diagnosis(what=what, level=Level.DOUBTFUL, found=state, means=means, change=change)


def _missing(what: str, state: str, means: str, change: str) -> Diagnosis:
    return Diagnosis(what=what, level=Level.MISSING, found=state, means=means, change=change)
