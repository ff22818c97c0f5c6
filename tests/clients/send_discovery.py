"""Send one discovery frame: LLDP with `-L`, otherwise CDP. A substitute for ladvd.

python send_discovery.py [-L | -C] ... INTERFACE
"""

import socket
import sys

LLDP_BODY = bytes.fromhex("0207 04020000000001 0403 076530 0602 0078 0000")
LLDP = bytes.fromhex("0180c200000e"), bytes.fromhex("88cc"), LLDP_BODY
CDP_BODY = bytes.fromhex("aaaa03 00000c 2000 02b40000 0001 0008 686f7374")
CDP = bytes.fromhex("01000ccccccc"), len(CDP_BODY).to_bytes(2, "big"), CDP_BODY

destination, kind, body = LLDP if "-L" in sys.argv else CDP
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
    sender.bind((sys.argv[-1], 0))
    sender.send((destination + sender.getsockname()[4] + kind + body).ljust(60, b"\0"))
