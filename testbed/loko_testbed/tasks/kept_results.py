"""Store the result of a task as bytes, and restore it.

The format is that of `pickle`, in which results also travel between processes. But a folder of results may
come from somebody else, so only values, arrays and this project's own classes are restored.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Final

_OWN: Final = ("loko", "loko_testbed")
"""Packages whose classes are restored."""
_OTHERS: Final = frozenset(
    {
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("collections", "Counter"),
        ("ipaddress", "IPv4Address"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
    }
)
"""Modules and names of what else is restored."""


class DamagedResultError(Exception):
    """Bytes are no result of a task."""


def stored(result: object) -> bytes:
    """Return a result as bytes."""
    return pickle.dumps(result, protocol=5)


def result_in(data: bytes) -> Any:
    """Restore the result that `stored` returned. Raises `DamagedResultError` for other bytes."""
    try:
        return _Restricted(io.BytesIO(data)).load()
    except Exception as error:  # noqa: BLE001 - damaged bytes may raise nearly anything
        raise DamagedResultError(str(error)) from None


class _Restricted(pickle.Unpickler):
    """Restores values and this project's classes, but calls no function of others."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class by its name. Raises `DamagedResultError` for what is not restored."""
        if (module, name) in _OTHERS:
            return super().find_class(module, name)
        if module.partition(".")[0] in _OWN and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise DamagedResultError(f"{module}.{name} is no result")
