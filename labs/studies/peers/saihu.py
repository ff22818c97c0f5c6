"""Bounds by the tools behind Saihu's interface, for `studies/portbounds`; runs in Saihu's environment.

Arguments: the folder that holds the package `saihu`, a network in Saihu's output-port format, `ON` or `OFF`
for line shaping, then `tool/method` words. Prints one JSON object: by word the delays by flow in seconds and
the time it took, or an error.
"""

import contextlib
import json
import sys
import tempfile
import time

PACKAGES, NETWORK, SHAPING, *WORDS = sys.argv[1:]
sys.path.insert(0, PACKAGES)
from saihu.interface import TSN_Analyzer  # noqa: E402

outcome_of = {}
with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(sys.stderr):
    for word in WORDS:
        tool, method = word.split("/")
        analyzer = TSN_Analyzer(NETWORK, temp_path=scratch + "/", shaping=SHAPING)
        began = time.perf_counter()
        try:
            getattr(analyzer, f"analyze_{tool}")(methods=method)
            seconds = time.perf_counter() - began
            (result,) = analyzer.results
            delays = {flow: float(delay) for flow, delay in result.flow_delays.items()}
            outcome_of[word] = {"seconds": seconds, "delays_s": delays}
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            outcome_of[word] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(outcome_of))
