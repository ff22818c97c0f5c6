"""Emulated switches in virtual time: one Zodiac FX by hand, or a network of them and others with traffic.

Instants and spans are integer nanoseconds. The same calls with the same seeds give the same results
on every machine. Wrong arguments raise `ValueError` or `TypeError`; the message says what, where,
and how to mend it.

A *profile* is the name of a file in ``switch-emulator/profiles`` (without ``.toml``) or a path; its
``kind`` says whether it is a Zodiac FX or, in a network only, another device (``docs/devices.md``). A
*config* holds a board's settings by name: ``name``, ``mac``, ``openflow_ports``, ``native_ports``,
``openflow_enabled``, ``ip_address``, ``netmask``, ``gateway``, ``controller_address``, ``controller_port``,
``fail_state``, ``openflow_version``, ``ethertype_filter``, ``ofchecks``, ``quirks`` (``"firmware"``,
``"spec"``, ``{"without": names}`` or ``{"only": names}``, see ``docs/quirks.md``), ``control``
(``"session"``, or ``"network"`` for a board that makes its TCP connection itself, by frames on its native
ports), ``ip_address``, ``netmask``, ``gateway``,
``controller_address``, ``controller_port``, ``acknowledgement_ns``, ``flow_memory_address``,
``loop_phase_ns``, ``timer_phase_ns``. Other devices have ``mac`` only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

__version__: str
"""Version of the emulator."""

def quirk_names(openflow_version: int = 0) -> list[str]:
    """Return the names of the deviations that can be switched, in the order of ``docs/quirks.md``.

    With a version (wire version number, 1 or 4): those of boards that always speak it.
    """

def read_profile(text: str) -> dict[str, Any]:
    """Return a profile, given as TOML, as values: sections with defaults, and each number as it is written.

    Absent parts without a default are left out. Raises `ValueError` with the line or the key.
    """

def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema of profiles of all kinds, which editors complete by."""

@final
class Output:
    """Something that a board gave out."""

    @property
    def at_ns(self) -> int:
        """When. For a frame: when its first bit leaves, which may lie after the board's present."""

    @property
    def kind(self) -> Literal["frame", "controller", "console", "event"]:
        """The content: a frame, one OpenFlow message for the controller, console text, or an event."""

    @property
    def port(self) -> int:
        """Ports by which a frame leaves, as a bit mask: 1 is port 1, 2 port 2, 4 port 3, 8 port 4."""

    @property
    def data(self) -> bytes:
        """The frame without FCS, the message, or the text of the event in UTF-8.

        ``b"connect"`` and ``b"close"`` are what the board wants of its TCP connection to the controller. When
        it restarts, it leaves the USB bus with ``b"detach"`` and is back with ``b"attach"``. ``b"eeprom"``:
        the console has saved the configuration.
        """

    def __eq__(self, other: object, /) -> bool: ...

@final
class Departures:
    """Frames that a board gave out, in columns with one row for each, in order of time. `len` counts them."""

    @property
    def at_ns(self) -> NDArray[np.uint64]:
        """See `Output.at_ns`."""

    @property
    def port(self) -> NDArray[np.uint8]:
        """See `Output.port`."""

    @property
    def size(self) -> NDArray[np.uint64]:
        """Bytes of the frame without FCS."""

    @property
    def tail(self) -> NDArray[np.uint64]:
        """The last eight bytes of the frame as a number, most significant first."""

    @property
    def others(self) -> int:
        """How many outputs of other kinds there were; they are gone."""

    def __len__(self) -> int: ...

@final
class Flow:
    """An entry of a board's flow table: the fields of OpenFlow 1.0 as the controller sent them."""

    @property
    def priority(self) -> int: ...
    @property
    def cookie(self) -> int: ...
    @property
    def wildcards(self) -> int: ...
    @property
    def in_port(self) -> int: ...
    @property
    def dl_src(self) -> str: ...
    @property
    def dl_dst(self) -> str: ...
    @property
    def dl_vlan(self) -> int: ...
    @property
    def dl_vlan_pcp(self) -> int: ...
    @property
    def dl_type(self) -> int: ...
    @property
    def nw_tos(self) -> int: ...
    @property
    def nw_proto(self) -> int: ...
    @property
    def nw_src(self) -> str: ...
    @property
    def nw_dst(self) -> str: ...
    @property
    def tp_src(self) -> int: ...
    @property
    def tp_dst(self) -> int: ...
    @property
    def idle_timeout_s(self) -> int: ...
    @property
    def hard_timeout_s(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def actions(self) -> list[bytes]:
        """The occupied action slots, in order: each an action as in a FLOW_MOD, at most 16 bytes."""

    @property
    def packets(self) -> int:
        """Frames that used the entry; wraps at 65536 as on the board, unless ``quirks`` is ``"spec"``."""

    @property
    def bytes(self) -> int:
        """Bytes that used the entry; turns negative at 2^31 as on the board."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Flow13:
    """An entry of a board's OpenFlow 1.3 tables, in bytes as the controller sent them."""

    @property
    def head(self) -> bytes:
        """The first 56 bytes of its FLOW_MOD."""

    @property
    def oxms(self) -> bytes:
        """The fields of its match, without header and padding."""

    @property
    def instructions(self) -> bytes: ...
    @property
    def packets(self) -> int:
        """Frames that used the entry; wraps at 65536 as on the board."""

    @property
    def bytes(self) -> int:
        """Bytes that used the entry; turns negative at 2^31 as on the board."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Board:
    """One board in virtual time, powered up at 0.

    With ``control="network"`` in its settings it makes its TCP connection itself, by frames on its native
    ports, and takes no notice of `connected`, `finished`, `reset`, `disconnected` and `segment`.

    Calls are in order of time: an instant before the last one raises `ValueError`.
    """

    def __new__(
        cls,
        profile: str = "zodiac-fx",
        config: Mapping[str, object] | None = None,
        seed: int = 0,
        eeprom: bytes | None = None,
    ) -> Board:
        """Power up a board with these settings; `seed` fixes what is random about it.

        What `eeprom` holds, the image that `eeprom()` gives, counts more than `config`.
        """

    def connected(self, at_ns: int) -> None:
        """The controller's TCP session is established."""

    def finished(self, at_ns: int) -> None:
        """The controller has ended its half of the TCP session (FIN).

        The board's half stays open until its next attempt: in safe mode it still gives what its table misses.
        """

    def reset(self, at_ns: int) -> None:
        """The controller has reset the TCP session (RST), which to the board is no sign of life."""

    def disconnected(self, at_ns: int) -> None:
        """The controller's TCP session is gone: both halves have ended, or an attempt has failed."""

    def link(self, at_ns: int, port: int, is_up: bool) -> None:
        """A cable was plugged into port 1 .. 4, or pulled out. All are in at first."""

    def segment(self, at_ns: int, data: bytes) -> None:
        """Hand over the payload of one TCP segment from the controller. The board does not reassemble."""

    def frame(self, at_ns: int, port: int, data: bytes) -> None:
        """Hand over a frame, without FCS, that has completely arrived on port 1 .. 4."""

    def frames(self, at_ns: NDArray[np.int64], port: int, frames: list[bytes]) -> None:
        """Hand over many frames, each at its instant: the same as so many calls of `frame`, but quicker."""

    def console(self, at_ns: int, data: bytes) -> None:
        """Type at the serial console; what it prints is among the outputs."""

    def eeprom(self) -> bytes:
        """Return the 197 bytes of saved configuration; `docs/console.md` has the layout."""

    def advance(self, to_ns: int) -> None:
        """Let time pass."""

    def poll_at(self) -> int | None:
        """Return when `advance` has next something to do."""

    def outputs(self) -> list[Output]:
        """Take what the board has given out since the last call, in order of time."""

    def departures(self) -> Departures:
        """As `outputs`, for a caller that looks at frames only: quicker where there are many."""

    def flows(self) -> list[Flow]:
        """Return the flow table of OpenFlow 1.0 in its real order."""

    def flows13(self) -> list[Flow13]:
        """Return the entries of all OpenFlow 1.3 tables in the order of the board's one list."""

    @property
    def openflow_version(self) -> int:
        """Negotiated version on the wire: 1 for OpenFlow 1.0, 4 for 1.3; 0 before the controller's HELLO."""

@final
class Event:
    """Something that went wrong on a board; it ended neither board nor run."""

    @property
    def at_ns(self) -> int:
        """When, since the beginning of the run; negative before it."""

    @property
    def board(self) -> str:
        """Name of the board."""

    @property
    def text(self) -> str:
        """The fault, where it is, and how to mend it."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class TcpResult:
    """Result of a transfer over TCP. Instants are nanoseconds since the beginning of the run."""

    @property
    def segment_bytes(self) -> int:
        """Payload of a segment."""

    @property
    def delivered_bytes(self) -> int:
        """Payload that the receiver has, without gaps."""

    @property
    def timeouts(self) -> int:
        """How often the retransmission timer expired."""

    @property
    def retransmitted_ns(self) -> NDArray[np.int64]:
        """When a segment was sent again, one for each time."""

    @property
    def window_at_ns(self) -> NDArray[np.int64]:
        """When the congestion window became `window_segments`; at most once in a millisecond."""

    @property
    def window_segments(self) -> NDArray[np.uint64]: ...

@final
class RunResult:
    """The records of a run.

    The arrays have one row for each packet of an observed flow that passed the sender's tap,
    ordered by flow and sequence number. Instants are nanoseconds since the beginning of the run.
    """

    @property
    def flow(self) -> NDArray[np.int32]: ...
    @property
    def sequence(self) -> NDArray[np.int64]: ...
    @property
    def sent_ns(self) -> NDArray[np.int64]:
        """When the beginning of the frame passed the tap behind the sender's shaper."""

    @property
    def received_ns(self) -> NDArray[np.int64]:
        """When the beginning of the frame passed the receiver's tap; -1 if it never did."""

    @property
    def size(self) -> NDArray[np.int32]:
        """Bytes with FCS, without preamble."""

    @property
    def flows(self) -> dict[int, dict[str, int]]:
        """Fate of the frames of each flow, observed or not.

        ``offered``, ``dropped_at_sender`` and ``unsent`` never reached the tap; ``sent`` did; of these
        ``received`` arrived, the slowest after ``max_delay_ns``. ``duplicates``, ``misdelivered`` and
        ``corrupted`` arrived too, but do not count. ``nonconforming`` sent frames broke their token bucket,
        as an independent meter counts: none.
        """

    @property
    def tcp(self) -> dict[int, TcpResult]:
        """Result of each transfer over TCP. Its segments are its flow's packets, in the order of sending."""

    @property
    def boards(self) -> dict[str, dict[str, int]]:
        """Each device's counters by its name: ``received``, ``forwarded``, ``dropped_buffer``, ...

        ``unconnected`` counts frames that left by a port without a cable.
        """

    @property
    def packets(self) -> int:
        """Frames that passed the senders' taps, of all flows."""

    @property
    def unidentified(self) -> int:
        """Frames that reached a host and belong to no flow."""

    @property
    def in_flight(self) -> int:
        """Frames that were on a link when the run ended."""

    @property
    def lost_on_link_down(self) -> int:
        """Frames that were on a cable when it was pulled out, or came onto it while it was out."""

    @property
    def events(self) -> list[Event]:
        """Faults on the boards, in order of time; at most the first 1000."""

    @property
    def events_omitted(self) -> int:
        """Events beyond those."""

    @property
    def deviations(self) -> list[Event]:
        """Messages that boards lost or misread, in order of time; at most the first 1000."""

    @property
    def deviations_omitted(self) -> int:
        """Deviations beyond those."""

@final
class Network:
    """Boards, hosts and cables in virtual time, for one run or step by step.

    `seed` fixes all that is random.
    """

    def __new__(cls, seed: int) -> Network: ...
    def add_board(
        self, name: str, *, profile: str = "zodiac-fx", config: Mapping[str, object] | None = None
    ) -> None:
        """Add a board, powered up, or the device of another kind that the profile describes."""

    def add_controller(self, name: str, *, config: Mapping[str, object] | None = None) -> None:
        """Add a controller that boards with ``control="network"`` reach by frames.

        Each of its ports, numbered as you like, takes the cable of one board's native port. *config* holds
        its addresses by name: ``mac``, ``ip_address`` and ``tcp_port``; without it what a board from the
        factory looks for, 10.0.1.8 and 6633.
        """

    def add_host(self, name: str) -> None:
        """Add a host with one port, number 1."""

    def connect(
        self,
        a: str,
        a_port: int,
        b: str,
        b_port: int,
        *,
        rate_bps: float = 100_000_000.0,
        propagation_ns: int = 0,
    ) -> None:
        """Lay a cable between two ports, at their rate; a generic switch's ports also run at lower ones."""

    def control(
        self,
        board: str,
        segments: Sequence[bytes],
        *,
        spacing_ns: int = 10_000_000,
        await_reply: bool = False,
    ) -> list[bytes]:
        """Hand each as one TCP segment to a board and return what the board sent meanwhile.

        After each segment pass `spacing_ns`; with `await_reply` they begin when the board has replied, or has
        not for 1000 s. The first call opens the session. In the run, the board's echo requests are answered.
        A board with ``control="network"`` gets them as frames from the controller at its native port,
        at its own pace, while the whole network lives.
        """

    def unplug(self, name: str, port: int, *, at_ns: int) -> None:
        """Plan that the cable in a port is pulled out so long after the run has begun; in order of time.

        What is on it then or comes onto it later is lost, and boards at its ends see that the link is down.
        """

    def plug(self, name: str, port: int, *, at_ns: int) -> None:
        """Plan that the cable is plugged in again."""

    def plan_control(self, board: str, segments: Sequence[tuple[int, bytes]]) -> None:
        """Plan what the controller sends in the run: (nanoseconds after its beginning, payload), in order.

        Each is the payload of one TCP segment; replies are thrown away. `control` must have opened the
        session.
        """

    def add_source(
        self,
        host: str,
        *,
        flow: int,
        frame: bytes,
        sequence_offset: int,
        shaper_rate_bps: float,
        shaper_burst_bytes: float,
        offered_rate_bps: float,
        burst_bytes: float,
        queue_bytes: float,
        observed: bool = True,
        destination: str | None = None,
    ) -> None:
        """Let a connected host send bursts at line rate, exponentially separated, through a token bucket.

        Rates and bursts count whole frames with FCS. `frame` is given without FCS; the flow's
        number is written into the 4 bytes before `sequence_offset`, the sequence number into the 4
        bytes from there, as in mgen's header. A frame that reaches another host than `destination`
        (without it: its sender) is lost.
        """

    def add_pattern(
        self,
        host: str,
        *,
        flow: int,
        frame: bytes,
        sequence_offset: int,
        shaper_rate_bps: float,
        shaper_burst_bytes: float,
        instants_ns: NDArray[np.int64],
        observed: bool = True,
        destination: str | None = None,
    ) -> None:
        """Let a connected host offer a frame at each of these instants, in ns after the run's beginning.

        They rise. A frame leaves as soon as the token bucket lets it, so whatever is asked for, what is sent
        conforms. The rest is as in `add_source`.
        """

    def add_tcp(
        self,
        host: str,
        *,
        flow: int,
        frame: bytes,
        destination: str,
        congestion_control: Literal["cubic", "reno"] = "cubic",
        window_bytes: int = 3_145_728,
        start_ns: int = 0,
        observed: bool = True,
    ) -> None:
        """Let a connected host send a bulk transfer over TCP, from `start_ns` after the run's beginning on.

        `frame` is a full segment without FCS: Ethernet, IPv4 and TCP without options; time stamps take 12
        bytes of its payload. `window_bytes` is the most payload under way. Hosts of transfers have no other
        sources.
        """

    def begin_capture(self) -> None:
        """Capture the frames on all cables, and the control sessions of the boards that have been added."""

    def captured_frames(self) -> list[tuple[int, int, tuple[str, int], tuple[str, int], bytes]]:
        """Take the captured frames, in order of departure.

        Each is when its first bit left, when it reached the other end (in ns since the boards were powered
        up), name and port of both ends, and its bytes without frame check sequence and padding.
        """

    def captured_segments(self) -> list[tuple[str, list[tuple[int, bool, bytes]]]]:
        """Take what was captured of each board's control session, by the board's name, in order of time.

        Each is the payload of a TCP segment, with its instant at the board and whether the board sent it.
        Sessions of boards with ``control="network"`` are frames on cables instead.
        """

    def now_ns(self) -> int:
        """Return how far time has come since the boards were powered up: when a run would begin.

        In a network that is advanced, the instant of the last step.
        """

    def advance(self, to_ns: int) -> None:
        """Let time pass until `to_ns` since power-up. From the first step on, this takes the place of `run`.

        The caller keeps the boards' sessions and answers their echo requests. Hosts have no sources: they
        `send` what the caller says, when it says so.
        """

    def connected(self, board: str) -> None:
        """The controller's TCP session with a board is established, now."""

    def disconnected(self, board: str) -> None:
        """The controller's TCP session with a board is gone, now."""

    def segment(self, board: str, data: bytes) -> None:
        """Hand a board the payload of one TCP segment from the controller, now."""

    def console(self, board: str, typed: bytes) -> None:
        """Type at the serial console of a Zodiac FX, now."""

    def set_link(self, name: str, port: int, is_up: bool) -> None:
        """Pull out the cable in a port, or plug it in again, now: what is on it meanwhile is lost."""

    def send(self, host: str, frame: bytes, at_ns: int) -> int:
        """Let a host send a frame, without FCS, at this instant, or as soon afterwards as its line is free.

        Returns when the line is free again. A host's frames are given in the order in which they leave; the
        instant may lie ahead.
        """

    def outputs(self) -> list[tuple[str, Output]]:
        """Take what boards have said and what has reached hosts since the last call, in order of time.

        Each with the name of its board or host. A frame's instant is when its first bit reached the host.
        """

    def flows(self, board: str) -> list[Flow]:
        """Return the OpenFlow 1.0 table of a Zodiac FX, in its real order."""

    def run(self, *, duration_ns: int, drain_ns: int = 100_000_000) -> RunResult:
        """Send for `duration_ns`, then let the frames in flight arrive for `drain_ns`.

        Releases the interpreter lock, so that several threads use several processors. A network runs once.
        """
