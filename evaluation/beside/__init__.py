"""Programs that run beside `loko serve`, with the boards or at the hosts, and what they share.

    program     they are told which flows are in place, answer with what was observed, end with the service
    senders     what a host may send of an admitted flow, at its worst; pure
    taps        what of it arrived, and when; pure

The programs are `evaluation.emulation` (boards, cabled with hosts or not) and `evaluation.live.watching`.
"""
