"""A lab of three switches in a triangle, a host at each: every flow between switches has two paths."""

from __future__ import annotations

from pathlib import Path

from loko.topology.lab import Lab, load_lab

TRIANGLE = """\
name: triangle
title: Triangle of three Zodiac FX with one host each

switches:
  s1: {datapath_id: "00:00:70:b3:d5:6c:00:01", profile: zodiac-fx, config: {ofchecks: false}}
  s2: {datapath_id: "00:00:70:b3:d5:6c:00:02", profile: zodiac-fx, config: {ofchecks: false}}
  s3: {datapath_id: "00:00:70:b3:d5:6c:00:03", profile: zodiac-fx, config: {ofchecks: false}}

hosts:
  H1: {mac: "02:00:00:00:00:01", ip: 10.0.0.1/24}
  H2: {mac: "02:00:00:00:00:02", ip: 10.0.0.2/24}
  H3: {mac: "02:00:00:00:00:03", ip: 10.0.0.3/24}

links:
  - {a: H1, b: "s1:1"}
  - {a: H2, b: "s2:1"}
  - {a: H3, b: "s3:1"}
  - {a: "s1:2", b: "s2:3"}
  - {a: "s2:2", b: "s3:3"}
  - {a: "s3:2", b: "s1:3"}
"""
DIRECT = "s1:2-s2:3"
"""The cable on the shortest path from H1 to H2."""


def triangle(folder: Path, *, chips: int = 0) -> Lab:
    """Write the lab into a folder and load it. The first so many switches are switch chips, not boards."""
    text = TRIANGLE.replace("profile: zodiac-fx, config: {ofchecks: false}", "profile: ideal-1g", chips)
    (folder / "lab.yml").write_text(text)
    return load_lab(folder)
