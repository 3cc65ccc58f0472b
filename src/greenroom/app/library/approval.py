"""Deciding: before some calls a person is asked. Here the program's own function is that person."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from greenroom.app.runtime import Runtime
from greenroom.app.threads import aside
from greenroom.app.toolset.pipeline import wish
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.base.ids import ApprovalId, TeamId
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.core.sync.bus import Commit

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that waits for a yes: who wants to make it, of which tool, with what. `question` says it in a sentence.

    `why` is the reason for which the policy asks, `grant` the rules that `Answer.run` and `Answer.always` agree to (one
    a line; empty: there are none). `release` are places, one a line, to which what the agent has read would go:
    `Answer.run` lets it go there, for this run. With `words` an agent asks for an answer in words: the text that is
    returned.
    """

    agent: str
    tool: str
    arguments: dict[str, object]
    question: str
    run: str
    why: str = ""
    grant: str = ""
    words: bool = False
    release: str = ""


class Answer(Enum):
    """What a person may say beside True and False. *run* agrees to all that `Asked.grant` says, for all agents of the
    run, *always* for all runs in this workspace; where there is no grant, both mean this one call."""

    once = "once"
    run = "run"
    always = "always"
    no = "no"


Word: TypeAlias = bool | str | Answer
Approve: TypeAlias = Callable[[Asked], Word | Awaitable[Word]]
"""Who decides: True is a yes, False a no, and a text a no with the reason, which the agent reads. See `Answer` for
more. Who is asked for words answers with a text; False says that there is no answer."""

Confirm: TypeAlias = Callable[[str, bool], bool | Awaitable[bool]]
"""The same as Jarvis has it: `(tip, default) -> bool`."""

Keep: TypeAlias = Callable[[str], None]
"""Keeps the rules that a person agrees to for good."""

ONLY_YES_OR_NO: Final = "Only yes or no can be asked here. Decide yourself, and say in your answer what you assumed."


def by_confirming(confirm: Confirm) -> Approve:
    """Who decides with a function that only says yes or no. What nobody says yes to is not done."""

    def approve(asked: Asked) -> Word | Awaitable[Word]:
        return ONLY_YES_OR_NO if asked.words else confirm(asked.question, False)

    return approve


class Deciding:
    """Asks `approve` about each call that waits for a yes, once. What nobody waits for any more is asked no more."""

    def __init__(self, runtime: Runtime, approve: Approve | None, keep: Keep) -> None:
        self._runtime = runtime
        self._approve = approve
        self._keep = keep
        self._asking: dict[ApprovalId, asyncio.Task[None]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._failed = asyncio.Event()
        self._decided = 0

    @property
    def is_asked(self) -> bool:
        """Whether there is anybody to ask."""
        return self._approve is not None

    def follow(self, commit: Commit) -> None:
        self.look(commit.world)

    def look(self, world: World) -> None:
        """Ask about what waits now."""
        approve = self._approve
        if approve is None:
            return
        waiting = {name: one for name, one in world.approvals.items() if one.state == "pending"}
        for name in self._asking.keys() - waiting.keys():
            self._asking.pop(name).cancel()
            self._decided += 1
        for name in waiting.keys() - self._asking.keys():
            self._asking[name] = asyncio.create_task(self._ask(approve, world, waiting[name]))
            self._asking[name].add_done_callback(self._ended)

    async def until(self, over: Coroutine[Any, Any, S]) -> S:
        """Wait for this, unless whoever decides fails before it is over."""
        if self._approve is None:
            return await over
        waiting, failing = asyncio.ensure_future(over), asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait({waiting, failing}, return_when=asyncio.FIRST_COMPLETED)
            error = self._error
            if error is not None:
                raise WorldFault(f"`approve` failed, so nothing was decided: {_named(error)}.") from error
            return waiting.result()
        finally:
            waiting.cancel()
            failing.cancel()

    async def next(self) -> bool:
        """Wait until one more thing is decided; False when nobody decides about anything. What was decided since the
        last call counts too: whoever calls may have seen it waiting just before."""
        asking = [one for one in self._asking.values() if not one.done()]
        if asking:
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        decided, self._decided = self._decided, 0
        return bool(asking or self._asking or decided)

    async def close(self) -> None:
        """Ask no more; what was not decided waits for somebody else."""
        self._approve = None
        if not self._asking and not self._writing:
            return
        for asking in self._asking.values():
            asking.cancel()
        await asyncio.gather(*self._asking.values(), *self._writing, return_exceptions=True)

    @property
    def _error(self) -> BaseException | None:
        """With what somebody failed to decide."""
        return next((error for one in self._asking.values() if (error := _error_of(one)) is not None), None)

    def _ended(self, asking: asyncio.Task[None]) -> None:
        if _error_of(asking) is not None:
            self._failed.set()

    async def _ask(self, approve: Approve, world: World, approval: Approval) -> None:
        word = answer_of(approval, await _said(approve, _question(world, approval)))
        writing = asyncio.create_task(self._answer(world.team.team_id, word, approval.grant))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.shield(writing)

    async def _answer(self, team: TeamId, word: AnswerApproval, grant: str) -> None:
        """Others may decide too, at the command line for one. Whose word comes first counts: the asking is then
        cancelled, which must not take back what is being written; and the word of the second one is refused, so
        nothing of it is kept either."""
        try:
            await self._runtime.ask(team, word)
        except Refused:
            return
        if word.scope == "always":
            self._kept(grant)

    def _kept(self, grant: str) -> None:
        """The call is agreed to, whatever becomes of the rest."""
        try:
            self._keep(grant)
        except WorldFault as fault:
            logging.getLogger(__name__).warning("What was agreed to for good holds for this run only. %s", fault)


def answer_of(approval: Approval, word: Word) -> AnswerApproval:
    """What somebody's word means; `TypeError` for one that means nothing here."""
    name = approval.approval_id
    if approval.words:
        return _words(name, word)
    if isinstance(word, str):
        return AnswerApproval(approval_id=name, answer="denied", reason=word)
    if word is False or word is Answer.no:
        return AnswerApproval(approval_id=name, answer="denied")
    scope: Scope = word.value if isinstance(word, Answer) and (approval.grant or approval.release) else "once"
    if scope == "always" and not approval.grant:
        scope = "run"  # where things go that an agent holds is agreed to for a run at most
    return AnswerApproval(approval_id=name, answer="approved", scope=scope)


def _words(name: ApprovalId, word: Word) -> AnswerApproval:
    if isinstance(word, str) and word.strip():
        return AnswerApproval(approval_id=name, answer="approved", reason=word)
    if word is False or word is Answer.no:
        return AnswerApproval(approval_id=name, answer="denied", reason="There is no answer.")
    raise TypeError(f"it returned {word!r} to a question that wants words; a text is the answer, False is none")


def _question(world: World, approval: Approval) -> Asked:
    step = world.steps[approval.step_id]
    work, first = step.work, wish(step)
    return Asked(
        agent=approval.agent_id,
        tool=work.executor,
        arguments=dict(work.instruction_content or {}),
        question=approval.question,
        run=world.team.team_id,
        why=approval.question.removeprefix(first).strip() if approval.question.startswith(first) else "",
        grant=approval.grant,
        release=approval.release,
        words=approval.words,
    )


async def _said(approve: Approve, asked: Asked) -> Word:
    """A coroutine runs here, everything else in a thread, as with tools: it may well wait for a person."""
    if inspect.iscoroutinefunction(approve):
        answer: object = await approve(asked)
    else:
        answer = (await aside(partial(approve, asked))).result()
        if inspect.isawaitable(answer):
            answer = await cast("Awaitable[object]", answer)
    if not isinstance(answer, bool | str | Answer):
        raise TypeError(f"it returned {answer!r}; True is a yes, False or a reason is a no")
    return answer


def _error_of(asking: asyncio.Task[None]) -> BaseException | None:
    return asking.exception() if asking.done() and not asking.cancelled() else None


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
