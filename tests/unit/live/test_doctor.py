"""Diagnoses for machines of different kinds: facts in, diagnoses out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loko_testbed.cli.doctor import _print
from loko_testbed.live.doctor.adapters import stamps_in_hardware
from loko_testbed.live.doctor.facts import Adapter, Clocks, Cores, Facts, Noise, Requirement
from loko_testbed.live.doctor.judgement import MOST_EXCUSED, UNDER_WAY_NS, Diagnosis, Level, judge, trusted
from loko_testbed.live.doctor.noise import parse
from loko_testbed.simulation.runner import RunError

SECOND_NS = 1_000_000_000


def noise(count: int, duration_ns: int = 100_000, scheduling: str = "deadline, core 3") -> Noise:
    """Return ten seconds with `count` stalls, evenly spread."""
    total = 10 * SECOND_NS
    stalls = tuple((number * total // max(count, 1), duration_ns) for number in range(count))
    return Noise(scheduling=scheduling, duration_ns=total, threshold_ns=50_000, stalls=stalls)


GOOD = Facts(
    kernel="Linux 6.1.0 x86_64",
    root=True,
    parts=(
        Requirement(name="namespaces", there=True, change="another kernel"),
        Requirement(name="mgen", there=True, change="apt-get install mgen", found="/usr/bin/mgen"),
        Requirement(name="stand-in: ifb", there=True, change="the kernel needs ifb", backends=("ovs",)),
    ),
    cores=Cores(usable=4, emulator=3, emulator_alone=True, isolated=True, siblings=(), governor=None),
    deadline=True,
    clocks=Clocks(source="tsc", read_ns=60.0, step_ns=500),
    noise=noise(2),
    load=0.1,
    steal_share=0.0,
    virtual_machine=False,
    adapters=(Adapter(name="eth0", driver="igb", offloads=(), hardware_stamps=True),),
    versions={"python": "3.11.2"},
)


def finding(facts: Facts, what: str):
    [diagnosis] = [diagnosis for diagnosis in judge(facts) if diagnosis.what == what]
    return diagnosis


def test_a_good_machine_is_trusted_and_nothing_is_to_be_changed():
    diagnoses = judge(GOOD)
    assert {diagnosis.level for diagnosis in diagnoses} == {Level.OK}
    assert not any(diagnosis.means or diagnosis.change for diagnosis in diagnoses)
    assert trusted(diagnoses)


@pytest.mark.parametrize(
    ("changes", "what", "level"),
    [
        ({"root": False}, "root", Level.MISSING),
        (
            {"parts": (Requirement(name="mgen", there=False, change="apt-get install mgen"),)},
            "mgen",
            Level.MISSING,
        ),
        ({"parts": (Requirement(name="namespaces", there=None, change="x"),)}, "namespaces", Level.MISSING),
        (
            {"parts": (Requirement(name="stand-in: ifb", there=False, change="x", backends=("ovs",)),)},
            "stand-in: ifb",
            Level.NOTE,
        ),
        ({"cores": replace(GOOD.cores, usable=1, emulator=0, emulator_alone=False)}, "cores", Level.DOUBTFUL),
        ({"cores": replace(GOOD.cores, isolated=False)}, "core isolated", Level.NOTE),
        ({"cores": replace(GOOD.cores, siblings=(7,))}, "core's siblings", Level.NOTE),
        ({"cores": replace(GOOD.cores, governor="powersave")}, "frequency governor", Level.NOTE),
        ({"deadline": False}, "SCHED_DEADLINE", Level.DOUBTFUL),
        ({"deadline": None}, "SCHED_DEADLINE", Level.NOTE),
        ({"clocks": Clocks(source="hpet", read_ns=1200, step_ns=0)}, "clock", Level.DOUBTFUL),
        ({"clocks": Clocks(source="tsc", read_ns=60, step_ns=-3_000_000)}, "wall clock", Level.DOUBTFUL),
        ({"noise": noise(500)}, "CPU noise", Level.DOUBTFUL),
        ({"noise": None, "no_noise": "not built"}, "CPU noise", Level.DOUBTFUL),
        ({"steal_share": 0.03, "virtual_machine": True}, "hypervisor", Level.DOUBTFUL),
        ({"steal_share": None, "virtual_machine": True}, "hypervisor", Level.OK),
        ({"load": 3.0}, "load", Level.NOTE),
        ({"load": 5.0}, "load", Level.DOUBTFUL),
        (
            {"adapters": (Adapter(name="eth0", driver="r8169", offloads=("gro",), hardware_stamps=False),)},
            "card eth0",
            Level.NOTE,
        ),
    ],
)
def test_what_is_wrong_is_told_with_what_it_means_and_what_to_change(changes, what, level):
    facts = replace(GOOD, **changes)
    diagnosis = finding(facts, what)
    assert diagnosis.level is level
    if level is not Level.OK:
        assert diagnosis.means
        assert diagnosis.change
    assert trusted(judge(facts)) == (level in (Level.OK, Level.NOTE))


def test_a_packet_meets_a_stall_if_it_is_under_way_when_it_begins():
    once = Noise(
        scheduling="", duration_ns=SECOND_NS, threshold_ns=50_000, stalls=((500_000_000, 1_000_000),)
    )
    assert once.excused_share(4_000_000) == pytest.approx(0.005)
    assert once.worst_ns == 1_000_000
    twice = replace(once, stalls=((500_000_000, 1_000_000), (502_000_000, 1_000_000)))
    assert twice.excused_share(4_000_000) == pytest.approx(0.007), "what overlaps counts once"
    always = replace(once, stalls=((0, SECOND_NS), (5, 10)))
    assert always.excused_share(4_000_000) == 1
    assert replace(once, stalls=()).worst_ns == 0


def test_noise_is_doubtful_from_where_too_many_packets_would_be_excused():
    each_ns = UNDER_WAY_NS + 100_000
    most = int(MOST_EXCUSED * 10 * SECOND_NS / each_ns)
    assert finding(replace(GOOD, noise=noise(most)), "CPU noise").level is Level.OK
    assert finding(replace(GOOD, noise=noise(most + 5)), "CPU noise").level is Level.DOUBTFUL


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"noise": noise(500, scheduling="other (deadline refused)")}, "SCHED_DEADLINE"),
        ({"load": 3.0}, "end the other programs"),
        ({"virtual_machine": True}, "pin the virtual machine's processors"),
        ({}, "isolate the emulator's core"),
    ],
)
def test_advice_against_noise_names_the_likeliest_cause(changes, advice):
    facts = replace(GOOD, **{"noise": noise(500), **changes})
    assert advice in finding(facts, "CPU noise").change


def test_what_the_emulator_printed_is_read():
    text = (
        '{"scheduling": "deadline, core 1", "warning": null, "duration_ns": 1000, "looks": 5,'
        '"threshold_ns": 50, "count": 1, "worst_ns": 60, "total_ns": 60, "list": [[100, 60]]}'
    )
    read = parse(0, text, "")
    assert (read.scheduling, read.duration_ns, read.stalls) == ("deadline, core 1", 1000, ((100, 60),))


@pytest.mark.parametrize(
    ("status", "output", "complaint", "message"),
    [
        (
            2,
            "",
            "error: unrecognized subcommand 'noise'\n",
            "unrecognized subcommand 'noise': run 'make setup'",
        ),
        (0, "{}", "", "not as expected .*: run 'make setup'"),
        (0, "nonsense", "", "not as expected"),
    ],
)
def test_a_measurement_that_is_none_is_one_line(status, output, complaint, message):
    with pytest.raises(RunError, match=message):
        parse(status, output, complaint)


def test_ethtool_s_answer_tells_whether_both_directions_are_stamped():
    both = "Time stamping parameters for eth0:\nCapabilities:\n\thardware-transmit\n\thardware-receive\n"
    assert stamps_in_hardware(both)
    assert not stamps_in_hardware(both.replace("hardware-transmit", "software-transmit"))


def test_what_is_told_is_never_cut_nor_folded(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    command = (
        "add 'isolcpus=1 nohz_full=1' to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, restart"
    )
    diagnosis = Diagnosis(
        level=Level.NOTE, what="core isolated", found="/a/path/of/many/parts" * 5, means="m", change=command
    )
    _print([diagnosis], quick=False)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(diagnosis.found) for line in lines)
    assert f"         change: {command}" in lines
