"""Options of programs that others start, such as the controller of a lab; people start `loko`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from enum import Enum
from typing import NoReturn, TypeVar

from loko.user_error import UserError

_Choice = TypeVar("_Choice", bound=Enum)


class OneLineParser(argparse.ArgumentParser):
    """The options of a program that others start; wrong ones are a `UserError`, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Raise `UserError`."""
        raise UserError(f"{message}; see --help")


def one_of(choices: type[_Choice]) -> Callable[[str], _Choice]:
    """Return the function by which a parser reads a value of an enumeration."""

    def read(text: str) -> _Choice:
        try:
            return choices(text)
        except ValueError:
            allowed = ", ".join(str(choice.value) for choice in choices)
            raise argparse.ArgumentTypeError(f"{text!r} is unknown (allowed: {allowed})") from None

    return read
