"""Real boards of a lab: which network cards of this machine are cabled to which of their ports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import field_validator

from loko.document import StrictModel, read

Cards = Mapping[int, str]
"""The card at the other end of each cable, by port of a real board."""

_LONGEST_NAME = 15


class Cabling(StrictModel):
    """A file that says, beside a lab's file, which of its switches are real boards.

    A lab's file says what is connected with what. The cabling says where this machine takes part: at the
    other end of a cable from a real board to a host, to an emulated board, or to the controller.
    """

    switches: dict[str, dict[int, str]]

    @field_validator("switches")
    @classmethod
    def _possible(cls, switches: dict[str, dict[int, str]]) -> dict[str, dict[int, str]]:
        if not switches:
            raise ValueError(
                "names no real board: give one with its network cards, such as s1: {1: enp3s0f0}"
            )
        owners: dict[str, str] = {}
        for switch, cards in switches.items():
            for port, card in cards.items():
                if not card or len(card) > _LONGEST_NAME or "/" in card or any(map(str.isspace, card)):
                    raise ValueError(f"'{card}' is no name of a network interface, such as enp3s0f0")
                if card in owners:
                    raise ValueError(
                        f"{card} is at {owners[card]} already and cannot be at {switch}:{port} too"
                    )
                owners[card] = f"{switch}:{port}"
        return switches


def load_cabling(path: str | Path) -> Cabling:
    """Read a cabling. Raises `InputError` in one line."""
    return read(Path(path), Cabling)


def disagreement(
    cards: Cards, *, far: Mapping[int, str], real: frozenset[str], control_port: int
) -> str | None:
    """Return in one line what does not fit between a real board's cards and its lab; None if all fits.

    `far` maps each port of the board to the node at the other end of its cable; `real` names all real boards.
    """
    if control_port == 0:
        return "a real board needs a control_port, where its controller is"
    for port, node in far.items():
        if node in real and port in cards:
            return (
                f"port {port} leads to {node}, a real board too: cable them with each other and leave"
                f" {cards[port]} out"
            )
        if node not in real and port not in cards:
            return f"port {port} leads to {node}: name the network card that is cabled to it"
    if control_port not in cards:
        return f"port {control_port} is the control port: name the network card that is cabled to it"
    for port in cards:
        if port not in far and port != control_port:
            return f"port {port} is not used in this lab; leave {cards[port]} out"
    return None
