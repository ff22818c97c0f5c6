"""Labs whose switches are real boards: where their cables go, and what is refused."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import combinations

import pytest
import yaml

from loko.document import LABS, InputError
from loko.topology.lab import Backend, Endpoint, load_lab
from loko.topology.layout import arrange_lab
from loko_testbed.live.real_boards import silence
from loko_testbed.reproduce.figure import LabFigure
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.hardware import select_by_boards
from loko_testbed.reproduce.plots.cabling import draw, node_box, node_places

ONE = {"s1": {1: "card1", 2: "card2", 3: "card3", 4: "card4"}}
BOTH = {"s1": {1: "a1", 2: "a2", 4: "a4"}, "s2": {1: "b1", 2: "b2", 4: "b4"}}


DOCS = LABS.parent / "docs"
DRAWINGS = {
    "cabling-mixed": ("two-switch/lab.yml", "two-switch/one-real-board.yml"),
    "cabling-two-switch": ("two-switch/lab.yml", "two-switch/two-real-boards.yml"),
    "cabling-ring": ("ring/five.yml", "ring/five-two-real-boards.yml"),
}


@pytest.fixture
def cabled(tmp_path):
    def load(switches, lab="two-switch"):
        path = tmp_path / "cabling.yml"
        path.write_text(yaml.safe_dump({"switches": switches}))
        return load_lab(lab, path)

    return load


def test_one_real_board_and_where_its_cables_come_in(cabled):
    lab = cabled(ONE)
    assert lab.backends == (Backend.FIRMWARE, Backend.HARDWARE)
    assert lab.cards() == {
        Endpoint(node="H1", port=1): "card1",
        Endpoint(node="H2", port=1): "card2",
        Endpoint(node="s2", port=3): "card3",
    }
    assert str(lab.controller) == "10.0.1.8/24", "boards beside a real one reach the controller as it does"


def test_two_real_boards_are_cabled_with_each_other(cabled):
    assert [end.node for end in cabled(BOTH).cards()] == ["H1", "H2", "H3", "H4"]


def test_another_backend_leaves_real_boards_as_they_are(cabled):
    lab = cabled(ONE).with_backend(Backend.OVS)
    assert [lab.switches[name].backend for name in ("s1", "s2")] == [Backend.HARDWARE, Backend.OVS]
    with pytest.raises(InputError, match="--cabling"):
        lab.with_backend(Backend.HARDWARE)


@pytest.mark.parametrize(
    ("switches", "complaint"),
    [
        ({}, "switches: names no real board: give one with its network cards"),
        ({"s9": ONE["s1"]}, "s9: the lab has the switches s1, s2"),
        ({"s1": {1: "a", 2: "b", 3: "c"}}, "s1: port 4 is the control port: name the network card"),
        ({"s1": {1: "a", 2: "b", 4: "d"}}, "s1: port 3 leads to s2: name the network card"),
        ({**BOTH, "s1": {1: "a", 2: "b", 3: "c", 4: "d"}}, "s1: port 3 leads to s2, a real board too"),
        ({"s1": {1: "a", 2: "a", 3: "c", 4: "d"}}, "a is at s1:1 already and cannot be at s1:2"),
        ({"s1": {1: "a b", 2: "b", 3: "c", 4: "d"}}, "'a b' is no name of a network interface"),
    ],
)
def test_what_cannot_be_cabled_is_told_in_one_line(switches, complaint, cabled):
    with pytest.raises(InputError, match=complaint) as caught:
        cabled(switches)
    assert "\n" not in str(caught.value)


def test_without_names_those_figures_are_replayed_whose_lab_the_cabling_fits(cabled, tmp_path):
    def names(switches, lab):
        cabled(switches, lab)
        chosen = select([], experiments(), "hardware")
        fitting = select_by_boards(chosen, "hardware", tmp_path / "cabling.yml", all_or_none=False)
        return {figure.figure for figure in fitting}

    assert {"fig17a", "fig15", "fig3a", "fig19b", "table2"} <= names(ONE, "two-switch")
    assert "fivelive" not in names(ONE, "two-switch")
    neighbours = {"s1": {1: "a1", 3: "a3", 4: "a4"}, "s2": {1: "b1", 2: "b2", 4: "b4"}}
    assert names(neighbours, LABS / "ring/five.yml") == {"fivelive"}


def test_every_figure_of_a_lab_that_real_boards_can_make_is_offered():
    offered = set()
    for figure in experiments().values():
        if not isinstance(figure, LabFigure):
            assert "hardware" not in figure.modes, figure.name
        elif "live" in figure.modes and load_lab(figure.lab).control_port:
            offered.add(figure.name)
    assert offered == {name for name, figure in experiments().items() if "hardware" in figure.modes}


def test_a_port_that_a_lab_does_not_use_needs_no_card(cabled):
    with pytest.raises(InputError, match="port 3 is not used in this lab; leave card3 out"):
        cabled(ONE, lab="bench")


def test_boards_without_a_port_for_the_controller_cannot_be_real(cabled):
    with pytest.raises(InputError, match="real boards need its address"):
        cabled({"s1": {1: "a", 2: "b", 3: "c", 4: "d"}}, lab="ring")


def test_the_drawing_names_every_card_and_node(cabled, tmp_path):
    draw(cabled(ONE), tmp_path / "lab.svg")
    assert (tmp_path / "lab.svg").stat().st_size > 1000
    assert (tmp_path / "lab.png").read_bytes().startswith(b"\x89PNG")


def test_a_host_with_two_interfaces_stands_once_between_its_switches_and_its_cables_bear_their_names(
    tmp_path,
):
    draw(load_lab("two-switch/server.yml"), tmp_path / "server.svg")
    drawn = (tmp_path / "server.svg").read_bytes()
    assert drawn == (DOCS / "images/cabling-server.svg").read_bytes(), "run 'make drawings'"
    assert all(drawn.count(text) == 1 for text in (b">server<", b">eth1<", b">eth2<"))


def test_two_cables_of_a_host_to_one_switch_lie_beside_each_other(tmp_path):
    text = (LABS / "two-switch/server.yml").read_text()
    text = text.replace('"s2:2"', '"s1:4"').replace("control_port: 4", "control_port: 0")
    (tmp_path / "lab.yml").write_text(text)
    draw(load_lab(tmp_path), tmp_path / "server.svg")
    drawn = (tmp_path / "server.svg").read_text()
    first, second = (
        re.search(rf"translate\((-?[\d.]+),(-?[\d.]+)\)[^>]*>{name}<", drawn) for name in ("eth1", "eth2")
    )
    assert first is not None
    assert second is not None
    assert math.dist(map(float, first.groups()), map(float, second.groups())) > 15


def plant(folder):
    """Write a lab of 20 switches with three hosts each: a ring with rings and a tree at it."""
    rings = [[f"m{n}" for n in range(5)], *([f"m{at}", *(f"r{at}{n}" for n in range(4))] for at in (0, 2))]
    cables = [pair for ring in rings for pair in zip(ring, [*ring[1:], ring[0]], strict=True)]
    cables += [("m1", "t0"), *(("t0", f"t{n}") for n in range(1, 7))]
    names = sorted({name for pair in cables for name in pair})
    used = Counter()

    def port(name):
        used[name] += 1
        return f"{name}:{used[name]}"

    links = [{"a": port(a), "b": port(b)} for a, b in cables]
    hosts = [f"h{name}{n}" for name in names for n in range(3)]
    links += [{"a": host, "b": port(host[1:-1])} for host in hosts]
    lab = {
        "name": "plant",
        "title": "Plant",
        "switches": {
            name: {"datapath_id": f"00:00:02:00:00:00:00:{n:02x}", "profile": "dell-s3048-on"}
            for n, name in enumerate(names)
        },
        "hosts": {
            host: {"mac": f"02:00:00:00:01:{n:02x}", "ip": f"10.0.0.{n + 1}/24"}
            for n, host in enumerate(hosts)
        },
        "links": links,
    }
    (folder / "lab.yml").write_text(yaml.safe_dump(lab))
    return load_lab(folder)


def gap(a, b):
    """Return the room between two boxes; negative if they overlap."""
    (ax, ay), (bx, by) = a.middle, b.middle
    return max(abs(ax - bx) - (a.width + b.width) / 2, abs(ay - by) - (a.height + b.height) / 2)


@pytest.mark.parametrize("name", ["ring", "plant", "server"])
def test_at_the_size_of_a_plant_no_box_hides_another(name, tmp_path):
    labs = {"ring": "ring", "server": "two-switch/server.yml"}
    lab = load_lab(labs[name]) if name in labs else plant(tmp_path)
    assert name == "server" or len(lab.hosts) >= 57
    places = node_places(lab)
    boxes = {node_box(lab, node, places[node]) for node in (*lab.switches, *lab.hosts)}
    assert len(boxes) == len(lab.switches) + len(lab.machines)
    assert min(gap(a, b) for a, b in combinations(boxes, 2)) >= 5


def test_switches_stand_as_on_the_page_of_the_service(tmp_path):
    lab = plant(tmp_path)
    places, arranged = node_places(lab), arrange_lab(lab)
    first, *others = lab.switches
    scale = {
        round(math.dist(places[name], places[first]) / math.dist(arranged[name], arranged[first]), 3)
        for name in others
    }
    assert len(scale) == 1


def test_the_interfaces_of_a_host_may_be_cards_of_this_machine(cabled):
    cards = cabled(BOTH, lab="two-switch/server.yml").cards()
    assert {end.node: card for end, card in cards.items()} == {
        **{"H1": "a1", "server:eth1": "a2"},
        **{"H3": "b1", "server:eth2": "b2"},
    }


@pytest.mark.parametrize("image", sorted(DRAWINGS))
def test_the_drawings_of_the_hardware_guide_are_what_its_command_draws(image, tmp_path):
    lab, cabling = DRAWINGS[image]
    draw(load_lab(LABS / lab, LABS / cabling), tmp_path / f"{image}.svg")
    drawn = (tmp_path / f"{image}.svg").read_bytes()
    assert drawn == (DOCS / "images" / f"{image}.svg").read_bytes(), "run 'make drawings'"


def test_every_picture_of_the_documentation_is_shown_by_a_page():
    pages = (*DOCS.glob("*.md"), *DOCS.glob("site/*.py"), DOCS.parent / "README.md")
    shown_there = "".join(page.read_text() for page in pages)
    for picture in (DOCS / "images").iterdir():
        shown = f"images/{picture.name})" in shown_there
        twin = picture.suffix == ".png" and f"images/{picture.stem}.svg)" in shown_there
        assert shown or twin, picture.name


def test_silence_is_one_line():
    assert "\n" not in silence("s1", "10.0.1.8:6633")


def test_the_hardware_inventorys_cabling_fits_the_two_switch_lab(cabled):
    inventory = LABS.parent / "playbooks/inventories/hardware/hosts.yml"
    bench = yaml.safe_load(inventory.read_text())["testbed"]["hosts"]["bench"]
    lab = cabled(bench["testbed_cabling"])
    [real] = lab.behind(Backend.HARDWARE)
    board = yaml.safe_load(inventory.read_text())["boards"]["hosts"][real.name]
    assert board["board_mac_address"] == real.config["mac"]
    assert board["board_ip_address"] == real.config["ip_address"]
