"""Approvals: the program's `approve` function decides about tool calls that need approval."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from greenroom.app.runtime import Runtime
from greenroom.app.threads import start_in_thread
from greenroom.app.toolset.pipeline import describe_request
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.base.ids import ApprovalId, TeamId
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, ApprovalScope
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.bus import CommitNotice

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A tool call that waits for approval.

    - `agent`, `tool`, `arguments`, `run_id`: The call, and the id of its run.
    - `question`: The question as a sentence.
    - `reason`: Why the policy asks.
    - `grant`: The permission rules that `ApprovalDecision.run` and `.always` would add, one per line. Can be empty.
    - `release`: Where data of this conversation would go, one destination per line. `ApprovalDecision.run` allows these
      destinations for the run.
    - `wants_text`: The agent asks a question and wants a text as the answer.
    """

    agent: str
    tool: str
    arguments: dict[str, object]
    question: str
    run_id: str
    reason: str = ""
    grant: str = ""
    wants_text: bool = False
    release: str = ""


class ApprovalDecision(Enum):
    """A decision with a scope, as an alternative to True and False.

    *once* approves this call. *run* adds the rules of `ApprovalRequest.grant` for all agents of the run. *always* adds
    them for all runs in the workspace. Without a grant, both approve only this call. *deny* denies the call.
    """

    once = "once"
    run = "run"
    always = "always"
    deny = "deny"


ApprovalReply: TypeAlias = bool | str | ApprovalDecision
ApprovalCallback: TypeAlias = Callable[[ApprovalRequest], ApprovalReply | Awaitable[ApprovalReply]]
"""Decides about an approval request: True approves, False denies, a text denies with that reason.

An `ApprovalDecision` approves with a scope. If the request wants a text, return the text, or False for no answer. The
function can be a coroutine.
"""

SaveGrant: TypeAlias = Callable[[str], None]
"""Saves permission rules that a person approves permanently."""


class ApprovalHandler:
    """Calls `approve` once for each pending approval, and cancels the callback if another decision comes first."""

    def __init__(self, runtime: Runtime, approve: ApprovalCallback | None, save_grant: SaveGrant) -> None:
        self._runtime = runtime
        self._approve = approve
        self._save_grant = save_grant
        self._callbacks: dict[ApprovalId, asyncio.Task[None]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._failure_event = asyncio.Event()
        self._decided_count = 0

    @property
    def can_ask(self) -> bool:
        """Whether there is an `approve` function."""
        return self._approve is not None

    def follow(self, commit: CommitNotice) -> None:
        self.ask_pending(commit.state)

    def ask_pending(self, state: TeamState) -> None:
        """Start a callback for each pending approval."""
        approve = self._approve
        if approve is None:
            return
        pending = {name: approval for name, approval in state.approvals.items() if approval.state == "pending"}
        for name in self._callbacks.keys() - pending.keys():
            self._callbacks.pop(name).cancel()
            self._decided_count += 1
        for name in pending.keys() - self._callbacks.keys():
            self._callbacks[name] = asyncio.create_task(self._ask(approve, state, pending[name]))
            self._callbacks[name].add_done_callback(self._note_failure)

    async def wait_for(self, work: Coroutine[Any, Any, S]) -> S:
        """Wait for `work`. Raise `WorldFault` if the `approve` function fails first."""
        if self._approve is None:
            return await work
        work_task, failure_task = asyncio.ensure_future(work), asyncio.ensure_future(self._failure_event.wait())
        try:
            await asyncio.wait({work_task, failure_task}, return_when=asyncio.FIRST_COMPLETED)
            error = self._callback_error
            if error is not None:
                raise WorldFault("library.approve_failed", error=f"{type(error).__name__}: {error}") from error
            return work_task.result()
        finally:
            work_task.cancel()
            failure_task.cancel()

    async def wait_for_decision(self) -> bool:
        """Wait for the next decision. Return False if none is pending and none was made since the last call."""
        callbacks = [callback for callback in self._callbacks.values() if not callback.done()]
        if callbacks:
            await asyncio.wait(callbacks, return_when=asyncio.FIRST_COMPLETED)
        decided, self._decided_count = self._decided_count, 0
        return bool(callbacks or self._callbacks or decided)

    async def close(self) -> None:
        """Stop asking. Pending approvals stay pending."""
        self._approve = None
        if not self._callbacks and not self._writes:
            return
        for callback in self._callbacks.values():
            callback.cancel()
        await asyncio.gather(*self._callbacks.values(), *self._writes, return_exceptions=True)

    @property
    def _callback_error(self) -> BaseException | None:
        return next(
            (error for callback in self._callbacks.values() if (error := _get_error(callback)) is not None), None
        )

    def _note_failure(self, callback: asyncio.Task[None]) -> None:
        if _get_error(callback) is not None:
            self._failure_event.set()

    async def _ask(self, approve: ApprovalCallback, state: TeamState, approval: Approval) -> None:
        intent = make_answer(approval, await _ask_callback(approve, _make_request(state, approval)))
        writing = asyncio.create_task(self._submit_answer(state.team.team_id, intent, approval.grant))
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)
        await asyncio.shield(writing)

    async def _submit_answer(self, team: TeamId, intent: AnswerApproval, grant: str) -> None:
        """Submit a decision; the first decision wins.

        A person can decide the same approval at the command line. That cancels the callback here, but not a decision
        that is being written. A second decision is refused, and its grant is not saved.
        """
        try:
            await self._runtime.ask(team, intent)
        except RefusedError:
            return
        if intent.scope == "always":
            try:
                self._save_grant(grant)
            except WorldFault as fault:  # the call stays approved
                logging.getLogger(__name__).warning("The permanent approval applies to this run only. %s", fault)


def make_answer(approval: Approval, reply: ApprovalReply) -> AnswerApproval:
    """Turn a reply into an `AnswerApproval`. Raise `TypeError` if the reply does not fit the request."""
    name = approval.approval_id
    if approval.words:
        return _make_text_answer(name, reply)
    if isinstance(reply, str):
        return AnswerApproval(approval_id=name, answer="denied", reason=reply)
    if reply is False or reply is ApprovalDecision.deny:
        return AnswerApproval(approval_id=name, answer="denied")
    scope: ApprovalScope = (
        reply.value if isinstance(reply, ApprovalDecision) and (approval.grant or approval.release) else "once"
    )
    if scope == "always" and not approval.grant:
        scope = "run"  # destinations are approved for a run at most
    return AnswerApproval(approval_id=name, answer="approved", scope=scope)


def _make_text_answer(name: ApprovalId, reply: ApprovalReply) -> AnswerApproval:
    if isinstance(reply, str) and reply.strip():
        return AnswerApproval(approval_id=name, answer="approved", reason=reply)
    if reply is False or reply is ApprovalDecision.deny:
        return AnswerApproval(approval_id=name, answer="denied", reason="There is no answer.")
    raise TypeError(f"it returned {reply!r} to a question that wants a text; return a text, or False for no answer")


def _make_request(state: TeamState, approval: Approval) -> ApprovalRequest:
    step = state.steps[approval.step_id]
    work, prefix = step.work, describe_request(step)
    return ApprovalRequest(
        agent=approval.agent_id,
        tool=work.executor,
        arguments=dict(work.instruction_content or {}),
        question=approval.question,
        run_id=state.team.team_id,
        reason=approval.question.removeprefix(prefix).strip() if approval.question.startswith(prefix) else "",
        grant=approval.grant,
        release=approval.release,
        wants_text=approval.words,
    )


async def _ask_callback(approve: ApprovalCallback, request: ApprovalRequest) -> ApprovalReply:
    """Call `approve`: coroutines on the event loop, other functions in a thread because they may block."""
    if inspect.iscoroutinefunction(approve):
        reply: object = await approve(request)
    else:
        reply = (await start_in_thread(partial(approve, request))).result()
        if inspect.isawaitable(reply):
            reply = await cast("Awaitable[object]", reply)
    if not isinstance(reply, bool | str | ApprovalDecision):
        raise TypeError(f"it returned {reply!r}; return True to approve, False or a reason to deny")
    return reply


def _get_error(callback: asyncio.Task[None]) -> BaseException | None:
    return callback.exception() if callback.done() and not callback.cancelled() else None
