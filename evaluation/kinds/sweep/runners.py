"""Which runner carries out a sweep in which mode, kept open as long as it can serve further points."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from evaluation.kinds.sweep.campaign import Plan
from evaluation.runner import Runner
from evaluation.virtual import VirtualRunner


class Runners:
    """Hands out runners. A live lab is kept until a sweep with other flows needs another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Runner] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def runner(self, plan: Plan) -> Runner:
        """The runner for a sweep. Raises `RunError` or `InputError` if it cannot be set up."""
        setting, options = plan.setting, plan.options
        routed = setting.admitted()
        key = repr(
            (
                options.mode,
                setting.lab.path,
                routed,
                plan.sweep.entries,
                options.capacity_factor,
                options.backend,
                options.builder,
                options.framework,
                options.framework_python,
            )
        )
        with self._lock:
            if key not in self._open:
                if options.real_time:
                    self._close()
                    from evaluation.live.runner import LiveRunner  # noqa: PLC0415 - Linux only, needs root

                    runner: Runner = LiveRunner.of(
                        setting.lab,
                        routed,
                        options,
                        allocation=plan.sweep.allocation,
                        entries=plan.sweep.entries,
                    )
                else:
                    runner = VirtualRunner(
                        setting.lab.with_backend(options.backend),
                        routed,
                        entries=plan.sweep.entries,
                        capacity_factor=options.capacity_factor,
                    )
                self._open[key] = self._stack.enter_context(runner)
            return self._open[key]

    def _close(self) -> None:
        """Close what is open: two live labs would take each other's processor."""
        self._stack.close()
        self._open.clear()
