"""Event streams end with the service, whenever they began."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from served_boards import ServedBoards

from loko.serve.events import EventFeed
from loko.serve.run import Operation


class Application:
    """Stands in for the OpenFlow application."""

    def end(self) -> None:
        pass


@pytest.mark.parametrize("moment", ["long before", "just before", "after"])
def test_a_stream_ends_with_the_service(moment: str, tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite")

    async def scene() -> None:
        operation = Operation(served.keeper, served.store, fatal=pytest.fail)  # type: ignore[arg-type]
        operation.application = Application()  # type: ignore[assignment]
        stream = EventFeed(operation).stream()
        if moment == "after":
            operation.interrupt("the service ends")
        first = await anext(stream)
        assert first.startswith(b"event: switches\n")
        if moment == "long before":
            await asyncio.sleep(0.05)
        operation.interrupt("the service ends")
        async with asyncio.timeout(20):
            assert [text async for text in stream] == []
        await operation.end()

    asyncio.run(scene())
