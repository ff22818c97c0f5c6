"""Transfers of iperf3 through a sliced port in real time, beside the same ones in virtual time."""
