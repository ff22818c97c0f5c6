"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on a machine that also runs other work; pytest limits each test.
settings.register_profile("loko", deadline=None)
settings.load_profile("loko")
