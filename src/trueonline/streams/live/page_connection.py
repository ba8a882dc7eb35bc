"""The connection of one page: what it subscribes to, and how far it has been served."""

from __future__ import annotations

import asyncio
from time import time
from typing import Any

from trueonline.streams.live import messages
from trueonline.streams.live.history import Buckets
from trueonline.streams.live.hub import Hub, Status

FRAME_SAMPLES = 8192  # samples in a frame, at most


class PageConnection:
    """One page: the questions that it wants, and the samples that it has already."""

    def __init__(self, hub: Hub, websocket: Any) -> None:
        self.hub, self.websocket = hub, websocket
        self.client = peer(websocket.scope["client"])
        self.news = asyncio.Event()
        self.wanted = (1, hub.first_shown())  # the number of the subscription, and its questions
        self._begun = 0  # the number of the subscription that has begun
        self._signals: tuple[int, ...] = ()
        self._next: int | None = None  # the next sample
        self._buckets: Buckets | None = None  # that it has some of …
        self._bucket = 0  # … and the number of the next
        self._status = Status()  # the last status sent
        self._experts = ""  # the last message of them

    async def hear(self) -> None:
        """Answer the requests of the page, until it has left."""
        while (message := await self.websocket.receive())["type"] == "websocket.receive":
            try:
                kind, value = messages.request(message.get("text"), len(self.hub.questions))
            except ValueError as error:
                await self.websocket.close(1008, str(error))
                return
            if kind == "subscribe":
                self.wanted = self.wanted[0] + 1, value
                self.news.set()
            else:
                await self.websocket.send_text(messages.text("clock", {"yours": value, "mine": time()}))

    async def greet(self) -> None:
        """Send the first message."""
        await self.websocket.send_text(self.hub.hello())

    async def send_news(self) -> bool:
        """Send new status and samples, at most one frame. Return whether there is more."""
        number, questions = self.wanted
        begins = number != self._begun
        if begins:
            self._begun, self._next, self._signals = number, None, self.hub.needed(questions)
            content = {"number": number, "questions": questions, "signals": self._signals, "clock": time()}
            await self.websocket.send_text(messages.text("subscribed", content))
            self._buckets = None
        await self._send_status(questions, begins)
        await self._send_history(number, questions)
        part = self.hub.read(self._next, self._signals, questions, FRAME_SAMPLES)
        if begins or len(part.times) or part.missed:
            await self.websocket.send_bytes(messages.samples(number, part, begins))
        self._next = part.end
        return len(part.times) == FRAME_SAMPLES

    async def _send_status(self, questions: tuple[int, ...], begins: bool) -> None:
        before, status = self._status, self.hub.status
        self._status = status
        if status.number != before.number:
            await self.websocket.send_text(status.words)
            if status.scores:
                await self.websocket.send_bytes(status.scores)
            if status.alerts != before.alerts:
                await self.websocket.send_text(status.alerts)
        if status.experts and (begins or status.number != before.number):
            experts = messages.text("experts", {"experts": {each: status.experts[each] for each in questions}})
            if experts != self._experts:
                self._experts = experts
                await self.websocket.send_text(experts)

    async def _send_history(self, number: int, questions: tuple[int, ...]) -> None:
        """Send buckets that are new, or all of them if they are others than before."""
        buckets = self.hub.buckets
        if not self.hub.needs_history(buckets):
            return
        anew = buckets is not self._buckets
        first = 0 if anew else self._bucket
        part = self.hub.past(buckets, first, self._signals, questions)
        if anew or len(part.begins):
            self._buckets, self._bucket = buckets, first + len(part.begins)
            await self.websocket.send_bytes(messages.history(number, part, anew))


def peer(address: Any) -> tuple[Any, ...] | None:
    """The address and port of the other side. IPv6 has two more parts, which not every library reports."""
    return tuple(address[:2]) if address else None


def has_left(error: BaseException, websocket: Any) -> bool:
    """Whether an error only says that the page has left, or was disconnected."""
    from starlette.websockets import WebSocketDisconnect, WebSocketState

    ended = WebSocketState.DISCONNECTED in (websocket.client_state, websocket.application_state)
    return ended or isinstance(error, WebSocketDisconnect | OSError)
