"""The allocation `optimised`: splits of all switches, chosen for an expected mix (docs/model.md, 13)."""

from loko.admission.optimised.search import SplitScore, optimised_splits
from loko.admission.optimised.streams import MixStream, expected_requests, streams_of

__all__ = ["MixStream", "SplitScore", "expected_requests", "optimised_splits", "streams_of"]
