"""Guarantees for switches with priority queues at each port, against hand calculations and the simulator."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from loko.admission import Admitted, Refusal
from loko.admission.port_queues import PortAdmission, unfit
from loko.admission.port_queues.device import worst_room_bytes
from loko.admission.schemes import SchemeName, default_scheme
from loko.control.entries import Enqueue, path_entries
from loko.document import PROFILES, InputError
from loko.notebook_api import plan
from loko.switch_model.calculus import (
    Arriving,
    PathStep,
    PortServer,
    RateLatency,
    TokenBucket,
    TotalFlow,
    UnsettledError,
    backlog_of_port_bytes,
    delay_of_port_ns,
    leftover_service,
)
from loko.switch_model.device import load_device
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import lab_of, load_lab
from loko_testbed.simulation.worst_case.port_trial import port_trial, transmit_and_judge

GBIT = RateLatency(rate_bps=1e9, latency_ns=0.0)
"""Transmitting a byte takes 8 ns."""
SIZES = (64, 306, 1518)
RING = load_lab("chip-ring")
FIT = ("dell-s3048-on", "nec-pf5240", "ideal-1g")


def bucket(mbps, burst_bytes):
    return TokenBucket(rate_bps=mbps * 1e6, burst_bytes=burst_bytes)


SPEEDS = ("10 Mbit/s", "100 Mbit/s", "1 Gbit/s")


def ring_of(profile, count=3, speeds=(None,)):
    """Return a ring, whose cables have the speeds one after another: those of the hosts, then the others."""
    speed = itertools.cycle(speeds)
    return lab_of(
        {
            "name": "ring",
            "title": "one way",
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:02:00:00:00:01:{n:02x}", "profile": profile}
                for n in range(count)
            },
            "hosts": {
                f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in range(count)
            },
            "links": [
                *({"a": f"h{n}", "b": f"s{n}:1", "speed": next(speed)} for n in range(count)),
                *(
                    {"a": f"s{n}:2", "b": f"s{(n + 1) % count}:3", "one_way": True, "speed": next(speed)}
                    for n in range(count)
                ),
            ],
        }
    )


def admission_for(lab, **options):
    return PortAdmission(lab, loko_scenario(entries=60, packet_sizes_bytes=SIZES), **options)


def flow(number, source, destination, *, mbps=5.0, frames=2, frame_bytes=306):
    return Flow(
        f"f{number}", source, destination, 5000 + number, 6000 + number, mbps * 1e6, frames * frame_bytes,
        frame_bytes,
    )  # fmt: skip


# Hand calculations.


def test_one_port_with_two_sources():
    """Two simultaneous bursts of 1000 bytes: the last byte leaves after 2000 x 8 ns."""
    arriving = [Arriving(bucket=bucket(100, 1000)), Arriving(bucket=bucket(200, 1000))]
    assert delay_of_port_ns(arriving, GBIT) == pytest.approx(16_000)
    assert backlog_of_port_bytes(arriving, GBIT) == pytest.approx(2000)
    late = RateLatency(rate_bps=1e9, latency_ns=1000)
    assert delay_of_port_ns(arriving, late) == pytest.approx(17_000)
    assert backlog_of_port_bytes(arriving, late) == pytest.approx(2000 + 37.5)  # 300 Mbit/s for 1 us
    assert delay_of_port_ns([Arriving(bucket=bucket(1001, 1))], GBIT) == math.inf
    assert delay_of_port_ns([], late) == 0


def test_a_cable_is_no_faster_than_its_line():
    """One cable of the same rate causes a delay of one frame only; two cables, of half of both bursts.

    Two cables bring 10,000 bytes each, in frames of 100 bytes. At t = (10000 - 100) x 8 = 79,200 ns, all
    20,000 bytes have arrived. Serving them takes 160,000 ns.
    """
    cable = Arriving(bucket=bucket(0, 10_000), line_rate_bps=1e9, line_burst_bytes=100)
    assert delay_of_port_ns([cable], GBIT) == pytest.approx(800)
    assert delay_of_port_ns([cable, cable], GBIT) == pytest.approx(160_000 - 79_200)
    assert backlog_of_port_bytes([cable, cable], GBIT) == pytest.approx(20_000 - 9_900)


def test_strict_priority_leaves_the_rest():
    """Le Boudec and Thiran, section 1.3.2: R' = 750 Mbit/s, T' = (b + l) / R' = 3000 x 8 / 0.75 ns."""
    left = leftover_service(GBIT, bucket(250, 2000), blocking_bytes=1000)
    assert left.rate_bps == 750e6
    assert left.latency_ns == pytest.approx(32_000)
    assert leftover_service(GBIT, bucket(1000, 0), blocking_bytes=0).rate_bps == 0


def test_a_tandem_grows_the_burst():
    """A lone flow of 100 Mbit/s and 1000 bytes: 8 us at the first server; then b = 1000 + 100 and 8.8 us."""
    network = TotalFlow({"a": PortServer(service=GBIT), "b": PortServer(service=GBIT)})
    network.add([PathStep("a"), PathStep("b")], bucket(100, 1000))
    assert network.settle("ab") == {"a": 8_001, "b": 8_801}  # rounded up to nanoseconds


def test_a_slow_cable_behind_a_fast_one():
    """A burst of 10,000 bytes in frames of 1,000 comes at 1 Gbit/s and leaves at 100 Mbit/s.

    At t = (10000 - 1000) x 8 = 72,000 ns all of it has come, and it takes 800,000 ns to send.
    """
    slow = PortServer(service=RateLatency(rate_bps=1e8, latency_ns=0.0), frame_bytes=1000)
    network = TotalFlow({"fast": PortServer(service=GBIT, line_rate_bps=1e9), "slow": slow})
    network.add([PathStep("fast", least_ns=80_000), PathStep("slow")], bucket(0, 10_000))
    assert network.settle(["fast", "slow"]) == {"fast": 80_001, "slow": 728_001}
    assert network.backlog_bytes("slow", {"fast": 80_001}) == pytest.approx(10_000 - 900)


def test_each_port_has_the_rate_of_its_cable():
    admission = admission_for(ring_of("ideal-1g", speeds=("100 Mbit/s", *(None,) * 5)))
    assert isinstance(admission.request(flow(0, "h1", "h0")), Admitted)
    allowed = {share.quantity: share.allowed for share in admission.usage("s0").shares}
    assert 99e6 < allowed["rate of port 1"] < 100e6
    assert admission._servers["h0"].service.rate_bps < 1e8 < admission._servers["h1"].service.rate_bps
    # A queue of as many frames takes ten times as long to send.
    slow_ns, fast_ns = admission._targets["s0:1"], admission._targets["s0:2"]
    assert slow_ns > 9 * fast_ns
    assert admission.usage("s0").delay_ns > slow_ns


def test_classes_of_one_port():
    """Higher class: its own 1000 bytes plus 500 of lower frames, 12 us. Lower: (1000 + 2000) / 900 Mbit/s."""
    high = PortServer(service=GBIT, blocking_bytes=500)
    network = TotalFlow({"high": high, "low": PortServer(service=GBIT, above=("high",))})
    network.add([PathStep("low")], bucket(10, 2000))
    assert network.settle(["low"])["low"] == 16_001
    network.add([PathStep("high")], bucket(100, 1000))
    bounds = network.settle(["high", "low"])
    assert bounds["high"] == 12_001
    assert bounds["low"] == math.ceil(3000 * 8 / 0.9)


@pytest.mark.parametrize("hops", [2, 3, 4])
def test_the_ring_of_the_books(hops):
    """Equal flows over n servers each: d = (n b + r d (1 + ... + (n - 1))) / C, the same for all servers."""
    count, mbps, burst = 5, 100, 1000
    network = TotalFlow({str(n): PortServer(service=GBIT) for n in range(count)})
    for n in range(count):
        network.add([PathStep(str((n + k) % count)) for k in range(hops)], bucket(mbps, burst))
    share = mbps / 1000
    expected_ns = hops * burst * 8 / (1 - share * hops * (hops - 1) / 2)
    for bound in network.settle(network.servers).values():
        assert bound == pytest.approx(expected_ns, abs=10)


def test_a_ring_without_a_bound_is_found_out():
    """Four hops at 20 %: 0.2 x 6 > 1, although the utilisation of every server is only 80 %."""
    network = TotalFlow({str(n): PortServer(service=GBIT) for n in range(4)})
    for n in range(4):
        network.add([PathStep(str((n + k) % 4)) for k in range(4)], bucket(200, 1000))
    with pytest.raises(UnsettledError):
        network.settle(network.servers, limits_ns=dict.fromkeys(network.servers, 1e9))


def test_order_and_detours_do_not_matter():
    """Bounds depend only on the set of flows, to the nanosecond, even if another one is checked meanwhile."""
    rng = Random(1)
    flows = [flow(n, f"h{n % 3}", f"h{(n + 2) % 3}", frame_bytes=rng.choice(SIZES)) for n in range(12)]
    seen = set()
    for _ in range(3):
        rng.shuffle(flows)
        admission = admission_for(ring_of("dell-s3048-on"))
        for asked in flows:
            assert isinstance(admission.request(asked), Admitted)
        seen.add(tuple(sorted(admission.bounds_ns.items())))
        assert isinstance(admission.check(flow(99, "h0", "h2")), Admitted)
        seen.add(tuple(sorted(admission.bounds_ns.items())))
    assert len(seen) == 1


# Devices.


@pytest.mark.parametrize(
    ("device", "why"),
    [
        *((name, None) for name in (*FIT, "dell-s4048-on")),
        ("pica8-p3290", "loses entries"),
        ("pica8-p3297", "loses entries"),
        ("hp-e3800", "refuses the action enqueue"),
        ("hp-2920", "refuses the action enqueue"),
        ("edge-core-as5712-54x", "before the whole frame"),
        ("open-vswitch-1g", "no priority queues"),
        ("zodiac-fx", "no queues of its own"),
    ],
)
def test_which_devices_can_be_promised_something(device, why):
    said = unfit(load_device(device))
    assert (said is None) if why is None else (said is not None and why in said and "\n" not in said)
    if why is not None and device != "zodiac-fx":
        with pytest.raises(InputError, match=f"nothing can be promised: .*{why}"):
            admission_for(ring_of(device))


def test_the_worst_room_is_what_an_adversary_leaves():
    """Other queues fill up one after another, frame by frame; then ours gets no less than the bound."""
    buffer = load_device("dell-s3048-on").buffer
    pool, percent = buffer.pool_bytes.value, buffer.factor_percent.value
    for others in (0, 3, 7):
        used = 0
        for _ in range(others):
            held = 0
            while held + 1522 <= (pool - used) * percent // 100 and pool - used >= 1522:
                held, used = held + 1522, used + 1522
        ours = 0
        while ours + 306 <= (pool - used) * percent // 100:
            ours, used = ours + 306, used + 306
        bound = worst_room_bytes(buffer, others=others)
        assert bound - 306 <= ours
        assert ours < bound + 3 * 1522  # and little more, so the bound is tight
    together = pool * percent / (100 + 8 * percent)
    assert worst_room_bytes(buffer, others=7) < together / 3  # the share if all n queues fill up together


# Admission.


def test_refusals_say_why():
    admission = admission_for(RING, target_ns=200_000)
    answer = admission.request(flow(0, "H1", "H3", mbps=990))
    assert isinstance(answer, Refusal)
    assert answer.quantity.startswith("rate of")
    for number in range(60):
        pair = ("H1", "H3") if number % 2 else ("H3", "H2")  # both leave s1 by port 2
        answer = admission.request(flow(number, *pair, frames=12, frame_bytes=1518))
        if isinstance(answer, Refusal):
            break
    assert isinstance(answer, Refusal)
    assert answer.quantity in {"delay of port 2", "burst of port 2"}
    smaller = answer.suggestion.as_values()
    assert smaller
    assert isinstance(admission.check(answer.flow._replace(**smaller)), Admitted)
    with pytest.raises(InputError, match="choose more"):
        admission_for(RING, target_ns=10_000)
    with pytest.raises(InputError, match="not a size"):
        admission.check(flow(99, "H1", "H3", frame_bytes=100))


def test_labs_of_such_switches_choose_it():
    assert default_scheme(RING) is SchemeName.PORTS
    assert default_scheme(load_lab("two-switch")) is SchemeName.LOKO
    made = plan(RING, [flow(0, "H1", "H3")])
    assert made.scheme == "ports"
    (_, entry), *_ = path_entries(RING, made.accepted[0])
    assert entry.actions == (Enqueue(2, 3),)


def test_flows_that_leave_count_until_their_frames_do_not():
    admission = admission_for(RING)
    big, other = (
        flow(number, *pair, frames=frames, frame_bytes=1518)
        for number, pair, frames in ((0, ("H1", "H3"), 40), (1, ("H3", "H2"), 80))
    )
    assert isinstance(admission.request(big), Admitted)
    assert isinstance(admission.request(other), Admitted)
    with_both = dict(admission.bounds_ns)
    admission.advance(10_000_000)
    admission.release("f0", now_ns=10_000_000)
    assert admission.bounds_ns == with_both
    again = replace_id(big, 2)
    refusal = admission.check(again)
    assert isinstance(refusal, Refusal)
    assert refusal.suggestion.wait_ms is not None
    backlogs = {server: admission.residual_backlog(server) for server in ("s1:2", "s2:2")}
    assert all(backlogs.values())
    admission.advance(10_000_000 + refusal.suggestion.wait_ms * 1_000_000)
    assert isinstance(admission.check(again), Admitted)
    admission.advance(10_000_000_000)
    assert admission.residual_backlog("s1:2") is None
    alone = admission_for(RING)
    alone.request(other)
    assert admission.bounds_ns == alone.bounds_ns
    # After a restart, flows are refused until the backlog left by the released flow no longer matters.
    alone.restore_backlogs({"s1:2": backlogs["s1:2"]}, now_ns=0)
    held = alone.check(again)
    assert isinstance(held, Refusal)
    assert held.suggestion.wait_ms is not None
    alone.advance(held.suggestion.wait_ms * 1_000_000)
    assert isinstance(alone.check(again), Admitted)
    with pytest.raises(KeyError):
        alone.restore_backlogs({"s9:1": 1.0}, now_ns=0)


def replace_id(template, number):
    return template._replace(id=f"f{number}", udp_source=5000 + number, udp_destination=6000 + number)


# Against the simulator.


@pytest.fixture(scope="module")
def quick_nec(tmp_path_factory):
    """The NEC with the same ports, but without the slow agent, which takes minutes to fill a table."""
    text = (PROFILES / "nec-pf5240.toml").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("profiles") / "nec-quick.toml"
    path.write_text(text.partition("[agent.throttle]")[0], encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("seed", [*range(9), 10, 12, 13, 15, 17, 20, 21])
def test_no_packet_of_a_random_set_is_late(seed, quick_nec):
    """From seed 6 on, cables have different speeds.

    The seeds left out have flows at 10 kbit/s beside hosts that fill 1 Gbit/s, for seconds.
    """
    rng = Random(seed)
    profile, count = ("dell-s3048-on", quick_nec, "ideal-1g")[seed % 3], rng.choice((3, 4))
    lab = ring_of(profile, count, speeds=(None,) if seed < 6 else rng.choices(SPEEDS, k=2 * count))
    slowest_mbps = min(map(lab.rate_bps, lab.links)) / 1e6
    admission = admission_for(lab)
    hosts = list(lab.hosts)
    for number in range(50):
        source, destination = rng.sample(hosts, 2)
        admission.request(
            flow(
                number, source, destination, mbps=rng.choice((1, 10, 40)) * slowest_mbps / 1e3,
                frames=rng.randint(1, 5), frame_bytes=rng.choice(SIZES),
            )
        )  # fmt: skip
    result = transmit_and_judge(
        lab, [admission.as_bound_now(name) for name in admission.admitted], seed=seed, packets=2000
    )
    assert result.packets > 300
    assert not result.broken
    assert not result.events


def test_wrong_bounds_are_found_out():
    """None of 600 lone frames beside lower-priority traffic exceeds the bound; without epsilon some would."""
    star = lab_of(
        {
            "name": "star",
            "title": "one switch",
            "switches": {"s0": {"datapath_id": "00:00:02:00:00:00:02:00", "profile": "dell-s3048-on"}},
            "hosts": {
                f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in range(3)
            },
            "links": [{"a": f"h{n}", "b": f"s0:{n + 1}"} for n in range(3)],
        }
    )
    admission = admission_for(star)
    answer = admission.request(flow(0, "h0", "h2", mbps=50, frames=1, frame_bytes=64))
    assert isinstance(answer, Admitted)
    result = transmit_and_judge(star, [answer], seed=1, packets=600)
    bound_ns = admission.as_bound_now("f0").guarantee_ns
    seen_ns = result.worst * answer.guarantee_ns
    service = admission._servers["s0:3"].service
    assert bound_ns - service.latency_ns < seen_ns <= bound_ns
    assert bound_ns - admission._servers["s0:3"].blocking_bytes * 8 < seen_ns


def test_a_trial_is_the_same_again():
    first, again = port_trial(3, packets=2000), port_trial(3, packets=2000)
    assert first == again
    assert not first.verdict.broken
    assert first.verdict.packets > 1000


@pytest.mark.parametrize("seed", range(4))
def test_what_a_request_does_not_change_need_not_be_asked(seed):
    """Checking only the ports that a request changes gives the same answer as checking all ports."""
    rng = Random(seed)
    admission = admission_for(ring_of("ideal-1g", 6))
    now_ns, refused = 0, 0
    for number in range(150):
        now_ns += rng.choice((0, 10**5, 10**8))
        admission.advance(now_ns)
        ids = list(admission.admitted)
        if ids and rng.random() < 0.3:
            admission.release(rng.choice(ids), now_ns=now_ns)
            continue
        source = rng.randrange(6)
        wanted = flow(
            number,
            f"h{source}",
            f"h{(source + rng.randint(1, 5)) % 6}",
            mbps=rng.choice((1.0, 60.0)),
            frames=rng.choice((1, 40)),
            frame_bytes=rng.choice(SIZES),
        )
        assert admission._state.is_within
        quick = admission.check(wanted)
        admission._state.is_within = False
        assert admission.check(wanted) == quick
        admission._state.is_within = True
        refused += isinstance(admission.request(wanted), Refusal)
    assert 10 < refused < 100
