"""A dialogue with the serial console of a Zodiac FX, real or emulated, by pyserial."""

from __future__ import annotations

import contextlib
import errno
import re
import time
from types import TracebackType
from typing import Self

import serial

PROMPT = re.compile(
    r"(?:^|\n)(?P<name>[^\s#]{0,15}?)(?:\((?P<context>config|openflow|debug)\))?# (?P<rest>.*)"
)
"""A prompt, and what stands behind it: nothing if the board waits, else what it has said unasked."""
LONGEST_LINE = 63
DELETE = b"\x7f"
CANCEL = b"\x18"
TIMEOUT_S = 4.0
"""A board that waits for a firmware upload does not answer; one that saves does, later."""

MUTE = (
    "nothing answers within {:.0f} s: is it the console of a Zodiac FX? The board may hang: take its power "
    "away for a moment"
)
FOREIGN = "what answers is no console of a Zodiac FX: it says {!r}; check board_device"


class ConsoleError(Exception):
    """The console cannot be used; one line that says what, where, and how to mend it."""


class Console:
    """The open console of a board; a context manager."""

    def __init__(self, device: str, timeout_s: float) -> None:
        """Open the device and find the prompt, whatever was typed before. Raises `ConsoleError`."""
        self._device = device
        self._timeout_s = timeout_s
        self._context = ""
        self._port = self._open()
        try:
            self._log_in()
        except BaseException:
            self._port.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the board in the root context, if it still answers, and close the device."""
        with contextlib.suppress(ConsoleError):
            if self._port.is_open and self._context:
                self.command("exit")
        self._port.close()

    def command(self, text: str, *, context: str | None = None) -> list[str]:
        """Carry a command out, in `context` if given (``""`` is the root). Gives the lines of its answer.

        Raises `ConsoleError` if the board does not know it or does not answer.
        """
        if context is not None:
            self._enter(context)
        answer = self._exchange(text)
        if any(re.search(r"(?i)unknown command", line) for line in answer):
            raise self._wrong(f"the board does not know the command {text!r}; is its firmware 0.84?")
        return answer

    def restart(self) -> None:
        """Restart the board and close the device; it comes back after a while."""
        self._enter("")
        self._write(b"restart\r")
        self._context = ""
        end = time.monotonic() + self._timeout_s
        # The device goes away with the USB connection.
        with contextlib.suppress(ConsoleError):
            while time.monotonic() < end:
                self._read()
        self._port.close()

    def _enter(self, context: str) -> None:
        if self._context and self._context != context:
            self._exchange("exit")
        if context and self._context != context:
            self._exchange(context)
        if self._context != context:
            raise self._wrong(f"the board does not enter the context {context or 'root'!r}")

    def _exchange(self, text: str) -> list[str]:
        """The lines between the echo of a command and the next prompt, also those that nobody asked for."""
        self._write(text.encode("ascii") + b"\r")
        end = time.monotonic() + self._timeout_s
        seen = ""
        while time.monotonic() < end:
            piece = self._read()
            seen += piece.replace("\r", "")
            echoed, _, answer = seen.partition(f"{text}\n")
            prompt = self._see_prompt(f"\n{answer}", quiet=not piece) if len(echoed) < len(seen) else None
            if prompt is not None:
                return answer[: max(prompt.start() - 1, 0)].splitlines()
        raise self._wrong(MUTE.format(self._timeout_s))

    def _log_in(self) -> None:
        """Find the prompt from a half-typed line, a trace, an upload, or before the banner.

        The line is taken back character by character: Enter alone would carry it out.
        """
        line = DELETE * LONGEST_LINE + b"\r"
        for keys, timeout_s in ((line, min(TIMEOUT_S, self._timeout_s)), (CANCEL + line, self._timeout_s)):
            with contextlib.suppress(serial.SerialException):
                self._port.reset_input_buffer()
            self._write(keys)
            seen = self._until_quiet(timeout_s)
            if self._see_prompt(seen, quiet=True):
                break
        else:
            seen = " ".join(seen.split())
            raise self._wrong(FOREIGN.format(seen[-60:]) if seen else MUTE.format(self._timeout_s))
        self._enter("")

    def _until_quiet(self, timeout_s: float) -> str:
        """Read until the board stays silent behind a prompt, or for the whole time without one."""
        end = time.monotonic() + timeout_s
        seen = ""
        while time.monotonic() < end:
            piece = self._read()
            seen += piece.replace("\r", "")
            if not piece and PROMPT.search(seen):
                break
        return seen

    def _see_prompt(self, seen: str, *, quiet: bool) -> re.Match[str] | None:
        """The last prompt, if the board waits there, or has said something unasked behind it and is quiet."""
        prompts = list(PROMPT.finditer(seen))
        if not prompts:
            return None
        prompt = prompts[-1]
        if not quiet and (prompt["rest"] or prompt.end() < len(seen)):
            return None
        self._context = prompt["context"] or ""
        return prompt

    def _open(self) -> serial.Serial:
        try:
            return serial.Serial(
                self._device, baudrate=115_200, timeout=0.3, write_timeout=self._timeout_s, exclusive=True
            )
        except (serial.SerialException, OSError, ValueError) as error:
            raise self._wrong(_remedy(error)) from None

    def _read(self) -> str:
        try:
            return self._port.read(max(1, self._port.in_waiting)).decode("ascii", errors="replace")
        except (serial.SerialException, OSError, TypeError) as error:
            raise self._wrong(f"the board has left the USB bus: {error}") from None

    def _write(self, keys: bytes) -> None:
        try:
            self._port.write(keys)
        except serial.SerialTimeoutException:
            raise self._wrong(MUTE.format(self._timeout_s)) from None
        except (serial.SerialException, OSError) as error:
            raise self._wrong(f"the board has left the USB bus: {error}") from None

    def _wrong(self, reason: str) -> ConsoleError:
        return ConsoleError(f"{self._device}: {reason}")


def open_again(device: str, timeout_s: float, *, within_s: float) -> Console:
    """Open the console of a board as soon as it is back, or raise `ConsoleError` after `within_s`."""
    end = time.monotonic() + within_s
    while True:
        try:
            return Console(device, timeout_s)
        except ConsoleError as error:
            if time.monotonic() > end:
                raise ConsoleError(f"not back {within_s:.0f} s after its restart: {error}") from None
            time.sleep(0.2)


def _remedy(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return "there is no such device: plug the board in and look into /dev/serial/by-id for its name"
    if number == errno.EACCES:
        return "not permitted: add the user to the group that owns the device (dialout), or set board_become"
    if number in (errno.EAGAIN, errno.EBUSY) or "exclusively lock" in str(error):
        return "another program uses it: close the terminal program (screen, minicom)"
    return f"cannot be opened as a serial device: {error}"
