"""Event streams end with the service, whenever they began."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from served_boards import ServedBoards

from loko.service.event_streams import EncodedEvents, EventStreams
from loko.service.events import EventFeed
from loko.service.run import ServiceLoop


class Application:
    """Stands in for the OpenFlow application."""

    def end(self) -> None:
        pass


def streams_of(operation: ServiceLoop) -> EventStreams:
    """Return the event streams of an operation in the same process."""

    async def put(news: EncodedEvents) -> None:
        streams.put(news)

    async def tell() -> None:
        await EventFeed(operation).publish(put)
        streams.end()

    telling: list[asyncio.Task[None]] = []
    streams = EventStreams(
        lambda on: telling.append(asyncio.create_task(tell())) if on else telling.pop().cancel()
    )
    return streams


@pytest.mark.parametrize("moment", ["long before", "just before", "after"])
def test_a_stream_ends_with_the_service(moment: str, tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite")

    async def scene() -> None:
        operation = ServiceLoop(served.manager, served.store, fatal=pytest.fail)  # type: ignore[arg-type]
        operation.application = Application()  # type: ignore[assignment]
        stream = streams_of(operation).stream()
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
