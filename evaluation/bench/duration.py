"""How long the parts of a campaign take in real time, told before they begin.

The board's own times are roughly those that the paper prints; the rest is what the bench waits. A bar
corrects the estimate while it runs.
"""

from __future__ import annotations

from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of

from evaluation.bench.cases import Table
from evaluation.bench.control_messages import Subject
from evaluation.bench.control_questions import Question
from evaluation.bench.interference import Leader

RENEWAL_S: Final = 4.0
"""A board that is switched off and on has booted and found its controller."""

_FRAME_S: Final = 50e-6
_BYTE_S: Final = 0.2e-6
_ENTRY_S: Final = 9e-6
"""Fig. 9: some 50 us for a frame, 10 us for each entry, and a byte's way in and out."""
_SPACING: Final = 1.25
_JITTER_S: Final = 50e-6
_TRAIN_S: Final = 0.05
"""Beside the frames of a train: three probes, the emulator's report, reading the taps."""
_ENTRY_LOAD_S: Final = 0.3e-3
_QUESTION_S: Final = 0.012
_PAIR_S: Final = 4.1e-3
_TRIALS: Final = 8
_TRIAL_S: Final = 1.2
"""A trial of the binary search: a second of frames, and the wait for those that are lost."""
_BURSTS: Final = 25
_BURST_S: Final = 0.06


def frame_s(table: Table, size: int) -> float:
    """A lone frame's way through the board."""
    return _FRAME_S + size * _BYTE_S + table.entries * _ENTRY_S


def data_plane_s(table: Table, sizes: tuple[int, ...], samples: int) -> float:
    """A table of dp-time."""
    frames_s = sum(samples * (_SPACING * frame_s(table, size) + _JITTER_S) + _TRAIN_S for size in sizes)
    return _load_s(table.entries) + frames_s


def needs_renewal(question: Question) -> bool:
    """Whether the switch has to be switched off and on afterwards: a bench undoes additions itself."""
    added = of.OFPFC_ADD.to_bytes(2, "big")
    return any(segment[1] == of.OFPT_FLOW_MOD and segment[56:58] != added for segment in question.segments)


def question_s(question: Question, samples: int) -> float:
    """A question of cp-time."""
    loads = 1 if question.repeatable else samples
    renewals = loads if needs_renewal(question) else 0
    return samples * _QUESTION_S + loads * _load_s(len(question.table)) + renewals * RENEWAL_S


def subject_s(subject: Subject, samples: int) -> float:
    """A message of figures 6 and 7."""
    loads = samples if subject.changes else 1
    return samples * _QUESTION_S + loads * _load_s(len(subject.table))


def interference_s(leader: Leader, pairs: int) -> float:
    """A leader and its followers."""
    return len(leader.sizes) * (pairs * _PAIR_S + _TRAIN_S)


def throughput_s(table: Table, sizes: tuple[int, ...]) -> float:
    """The binary searches on a table."""
    return _load_s(table.entries) + len(sizes) * _TRIALS * _TRIAL_S


def buffer_s(sizes: tuple[int, ...]) -> float:
    """Longer and longer bursts."""
    return len(sizes) * _BURSTS * _BURST_S


def said(seconds: float) -> str:
    """For people: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _load_s(entries: int) -> float:
    return 0.02 + entries * _ENTRY_LOAD_S
