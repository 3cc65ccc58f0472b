"""Hearing: what happens in a team, as a program hears it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final, TypeAlias

from greenroom.app.library.results import Again, Called, Returned, Said, Thought
from greenroom.app.talks.history import SPOKEN
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import ReasoningDelta, Retried, TextDelta
from greenroom.core.state.step import Step, StepEnded, StepStarted
from greenroom.core.sync.bus import Commit

Piece: TypeAlias = Said | Thought | Called | Returned | Again

EARLY: Final = 1_000
"""Pieces that are kept for somebody who begins to listen a little late: while nobody does, no more pile up."""


class Hearing:
    """Who listens hears all, in order, however slowly they take it."""

    def __init__(self) -> None:
        self._early: deque[Piece] = deque(maxlen=EARLY)
        self._listening: list[asyncio.Queue[Piece | None]] = []

    def forget(self) -> None:
        """What nobody has heard is of no interest any more."""
        self._early.clear()

    async def until(self, over: asyncio.Future[Any]) -> AsyncIterator[Piece]:
        """All that is heard before this is over."""
        news: asyncio.Queue[Piece | None] = asyncio.Queue()
        for piece in self._early:
            news.put_nowait(piece)
        self._early.clear()
        self._listening.append(news)
        over.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (heard := await news.get()) is not None:
                yield heard
        finally:
            self._listening.remove(news)

    def watch(self, step: Step, event: Live) -> None:
        """A piece of a reply has come."""
        if step.work.executor not in SPOKEN:
            return
        match event:
            case TextDelta():
                self._tell(Said(agent=step.agent_id, text=event.text))
            case ReasoningDelta():
                self._tell(Thought(agent=step.agent_id, text=event.text))
            case Retried():
                self._tell(Again(agent=step.agent_id, why=event.failed.why))
            case _:
                pass

    def follow(self, commit: Commit) -> None:
        """Something has become true."""
        ended = {row.record.step_id: row.record for row in commit.archived if isinstance(row.record, Step)}
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.world.steps:
                self._began(commit.world.steps[event.step_id])
            elif isinstance(event, StepEnded) and event.step_id in ended:
                self._ended(ended[event.step_id])

    def _began(self, step: Step) -> None:
        if step.work.type == "tool":
            given = dict(step.work.instruction_content or {})
            name, call = step.work.executor, step.work.call_id or ""
            self._tell(Called(agent=step.agent_id, tool=name, arguments=given, call_id=call))

    def _ended(self, step: Step) -> None:
        if step.work.type == "tool":
            came = Returned(
                agent=step.agent_id,
                tool=step.work.executor,
                output=step.error or str((step.result or {}).get("output", "")),
                failed=step.state != "finished",
                call_id=step.work.call_id or "",
            )
            self._tell(came)

    def _tell(self, piece: Piece) -> None:
        for news in self._listening:
            news.put_nowait(piece)
        if not self._listening:
            self._early.append(piece)
