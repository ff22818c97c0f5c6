"""Transfers of iperf3 through a sliced port in real time, with the same transfers in virtual time beside them."""
