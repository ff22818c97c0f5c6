"""Packet sizes and orders that bring messages through a slice soonest, predicted and measured."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from loko.document import InputError
from loko.slicing.document import HtbDequeue, HtbPort, Port, load_slices
from loko.slicing.lengths import Protocol, payload
from loko.slicing.order import SliceMessage, TransferPlan, transfer_plans
from loko_testbed.cli.main import app
from loko_testbed.measure.slices.port import SENDERS, SliceTrial, transmit
from loko_testbed.measure.slices.release import Release

PACKET = payload(Protocol.UDP, 1518)
DATA, COMMAND = SliceMessage("data", 15 * PACKET), SliceMessage("command", 5 * PACKET)
NEEDING = SliceMessage("command", 5 * PACKET, needs="data")


def found(port: Port, *messages: SliceMessage) -> list[TransferPlan]:
    return transfer_plans(port, port.queues[0], messages)


def by_order(ordered: list[TransferPlan], frame_bytes: int = 1518) -> dict[str, TransferPlan]:
    return {way.order: way for way in ordered if way.frame_bytes == frame_bytes}


def times_us(way: TransferPlan) -> tuple[float, float]:
    data, command = way.arrived_us["data"], way.arrived_us["command"]
    assert data is not None
    assert command is not None
    return data, command


def test_a_command_that_needs_its_data_is_best_sent_after_it() -> None:
    """Figure 3: 15 packets of data, 5 of the command, groups of 16. Case c is better than a and b."""
    at = by_order(found(load_slices("htb"), DATA, NEEDING))
    c, b, a = at["data, command"], at["in turns"], at["as one"]
    assert c.mean_us < min(a.mean_us, b.mean_us)
    data_us, command_us = times_us(c)
    assert (
        data_us < 250 < 900 < command_us
    )  # the data go with the first group, the end of the command with the second
    assert times_us(b)[0] == times_us(a)[0] == command_us


def test_messages_that_need_each_other_not_go_the_shorter_first() -> None:
    at = by_order(found(load_slices("htb"), DATA, COMMAND))
    assert min(at.values(), key=lambda way: way.mean_us).order == "command, data"


def test_ways_come_the_best_first_and_say_each_message() -> None:
    all_ways = found(load_slices("htb"), DATA, NEEDING)
    assert len(all_ways) == 4 * (2 + 2)
    assert all(earlier.mean_us <= later.mean_us for earlier, later in pairwise(all_ways))
    assert all(list(way.arrived_us) == ["data", "command"] for way in all_ways)


def test_shorter_packets_may_be_better_since_groups_count_packets() -> None:
    """As groups count packets and not bytes, the best packet length is not the maximum."""
    best = {way.order: way.frame_bytes for way in reversed(found(load_slices("htb"), DATA, NEEDING))}
    assert best["data, command"] != 1518


def test_without_groups_full_packets_are_best_and_the_data_still_go_first() -> None:
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    best = found(port.model_copy(update={"dequeue": HtbDequeue(group_frames=1)}), DATA, NEEDING)[0]
    assert (best.frame_bytes, best.order) == (1518, "data, command")


def test_what_the_policer_drops_is_said() -> None:
    port = load_slices("policer")
    assert all(way.mean_us == float("inf") for way in found(port, DATA, COMMAND))
    assert found(port, SliceMessage("one", 100))[0].arrived_us["one"] is not None


@pytest.mark.parametrize("name", ["htb", "trtcm"])
def test_the_best_way_is_the_best_when_measured(name: str) -> None:
    """Each way is sent through the simulated switch; each message's last packet is timed on arrival."""
    port = load_slices(name)
    card = "open-vswitch-10g" if name == "trtcm" else "open-vswitch-1g"
    measured: dict[tuple[int, str], float] = {}
    predicted: dict[tuple[int, str], float] = {}
    for way in found(port, DATA, NEEDING):
        each = payload(Protocol.UDP, way.frame_bytes)
        counts = {message.name: -(-message.size_bytes // each) for message in (DATA, NEEDING)}
        instants = np.full(sum(counts.values()), 1_000_000, dtype=np.int64)
        release = Release(queue=0, host=SENDERS[0], frame_bytes=way.frame_bytes, instants_ns=instants)
        sent = transmit(SliceTrial(port, card, {0: release}, 1))[0]
        came_us = (sent.received_ns - sent.sent_ns[0]) / 1e3
        last = {message: came_us[place] for place, message in enumerate(sequence(way.order, counts))}
        key = (way.frame_bytes, way.order)
        measured[key] = (last["data"] + max(last.values())) / 2
        predicted[key] = way.mean_us
    assert measured == pytest.approx(predicted, abs=1)
    best = min(measured.values())
    assert measured[next(iter(predicted))] == pytest.approx(best, abs=1)


def sequence(order: str, counts: dict[str, int]) -> list[str]:
    """Return the message of each packet; only the place of each message's last packet matters."""
    if order == "in turns":
        left, names = dict(counts), []
        while any(left.values()):
            for name in [name for name, many in left.items() if many]:
                names.append(name)
                left[name] -= 1
        return names
    if order == "as one":
        total = sum(counts.values())
        return ["command"] * (total - 1) + ["data"]
    return [name for name in order.split(", ") for _ in range(counts[name])]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the file"),
        (["htb"], "Give a --message"),
        (["htb", "--message", "data"], "is not NAME=BYTES"),
        (["htb", "--message", "data=0"], "is not NAME=BYTES"),
        (["htb", "--message", "a=1", "--message", "a=2"], "two messages have one name"),
        (["htb", "--message", "a=1:b"], "needs 'b', which is not sent"),
        (["htb", "--message", "a=1", "--queue", "none"], "has no queue 'none'; it has slice"),
        (["htb", "--message", "a=1", "--entries", "3"], "takes no options but"),
        (["htb", *[word for name in "abcdefg" for word in ("--message", f"{name}=1")]], "give 1 to 6"),
        (["unread", "--message", "a=1"], "may borrow"),
        (["bounded", "--message", "a=1"], "leave out its drops"),
        (["htb", "--message", "a=2000000", "--message", "b=2000000"], "packets of 256 bytes"),
    ],
)
def test_wrong_input_is_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["model", "order", *words])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_messages_are_only_for_the_ordering() -> None:
    result = CliRunner().invoke(app, ["model", "zodiac-fx", "--message", "a=1"])
    assert result.exit_code == 2
    assert "loko model order" in result.output


def test_a_port_slower_than_its_link_is_refused() -> None:
    port = load_slices("htb")
    assert isinstance(port, HtbPort)
    slower = port.model_copy(update={"root_rate_bps": 300_000_000})
    with pytest.raises(InputError, match="root_rate_bps"):
        found(slower, DATA)


def test_the_command_prints_a_table_or_all_as_json() -> None:
    words = [
        "model",
        "order",
        "htb",
        "--message",
        f"data={15 * PACKET}",
        "--message",
        f"command={5 * PACKET}:data",
    ]
    text = CliRunner().invoke(app, words)
    assert text.exit_code == 0
    assert "data, command" in text.output
    values = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert len(values) == 16
    assert values[0]["order"] == "data, command"
    assert values[0]["arrived_us"].keys() == {"data", "command"}
