"""Feed boards random frames, messages, console lines and cables; print a checksum of all that they gave out.

A program of its own, for any Python environment that has the module `switch_emulator`.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from random import Random

from switch_emulator import Board

BOARDS, STEPS = 400, 150
LINES = [b"config\r", b"openflow\r", b"show flows\r", b"show status\r", b"exit\r", b"set name s9\r"]
FLOW_MOD = 14


def message(version: int, kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), 9) + body


def flow_mod(chance: Random) -> bytes:
    """Return a message for one of a few ports and priorities, so that frames and entries match."""
    wildcards = 0x3FFFFF & ~chance.choice([0, 1, 8])
    match = struct.pack("!IH34x", wildcards, chance.randint(1, 4))
    rest = struct.pack("!QHHHHIHH", 7, chance.randrange(5), 0, 9, chance.randrange(9), 2**32 - 1, 0xFFFF, 1)
    action = struct.pack("!HHHH", 0, 8, chance.choice([1, 2, 3, 4, 0xFFFB, 0xFFFD]), 64)
    return message(1, FLOW_MOD, match + rest + action)


def flow_mod13(chance: Random) -> bytes:
    """Return the same in OpenFlow 1.3."""
    anything = 2**32 - 1
    rest = struct.pack("!QQBBHHH", 7, 0, 0, chance.randrange(5), 0, 9, chance.randrange(9))
    rest += struct.pack("!IIIH2x", anything, anything, anything, 1)
    match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, chance.randint(1, 4))
    instruction = struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, chance.randint(1, 4), 64)
    return message(4, FLOW_MOD, rest + match + instruction)


def step(board: Board, now_ns: int, version: int, chance: Random) -> None:
    """Do something to a board."""
    call = chance.random()
    if call < 0.4:
        head = bytes(6) + bytes([2, 0, 0, 0, 0, chance.randrange(4)]) + b"\x08\0"
        board.frame(now_ns, chance.randint(1, 4), head + chance.randbytes(chance.randint(46, 1500)))
    elif call < 0.6:
        board.segment(now_ns, flow_mod(chance) if version == 1 else flow_mod13(chance))
    elif call < 0.9:
        body = chance.randbytes(chance.choice([0, 4, 8, 72, 200]))
        board.segment(now_ns, message(version, chance.randrange(30), body))
    elif call < 0.97:
        board.console(now_ns, chance.choice(LINES))
    else:
        board.link(now_ns, chance.randint(1, 4), chance.random() < 0.5)


def main() -> None:
    kinds: Counter[str] = Counter()
    entries = 0
    digest = hashlib.sha256()
    for seed in range(BOARDS):
        chance = Random(seed)
        version = 1 if seed % 2 else 4
        config = {
            "openflow_version": version,
            "quirks": "spec" if seed // 2 % 2 else "firmware",
            "ofchecks": seed // 4 % 2 == 1,
        }
        board = Board(config=config, seed=seed)
        board.connected(2 * 10**9)
        board.segment(2 * 10**9 + 10**6, message(version, 0))
        now_ns = 3 * 10**9
        for _ in range(STEPS):
            now_ns += int(10 ** chance.uniform(2, 9))
            step(board, now_ns, version, chance)
            for output in board.outputs():
                kinds[output.kind] += 1
                digest.update(repr((output.at_ns, output.kind, output.port, output.data)).encode())
        for entry in [*board.flows(), *board.flows13()]:
            entries += 1
            names = [name for name in dir(entry) if not name.startswith("_")]
            digest.update(repr([getattr(entry, name) for name in names]).encode())
    few = [kind for kind in ("frame", "controller", "console", "event") if kinds[kind] < BOARDS]
    if few or entries < BOARDS:
        raise SystemExit(f"too little came about: {dict(kinds)}, {entries} entries")
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
