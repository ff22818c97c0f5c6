"""Common code of sidecars: programs that run beside `loko serve`, with the boards or at the hosts.

    program     receives the flows that are in place, reports observations, ends with the service
    senders     the worst conforming traffic of an admitted flow; pure
    taps        the frames that arrived, and when; pure

The programs are `loko_testbed.live.emulation` (boards, cabled with hosts or not) and
`loko_testbed.live.host_taps`.
"""
