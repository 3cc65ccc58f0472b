"""A person decides before a call: by a function of the program, which is told what it needs to decide."""

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest

from greenroom import Agent, ApprovalRequest, Greenroom, ModelRequest, RefusedError, WorldFault, tool
from greenroom import ApprovalDecision as Always
from greenroom.app.library.approval import ApprovalCallback, ApprovalHandler
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import ApprovalId, TaskId, TeamId
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills.talks import Answer, Played, calls, says
from tests.app.toolset.test_pipeline import STEP


def pays(request: ModelRequest) -> Answer:
    """Pays, then says what came of it."""
    told = [one.content for one in request.messages if one.role == "tool"]
    return says(told[0]) if told else calls("pay", amount=5)


def paying(paid: list[int]) -> Agent[str]:
    """Somebody who wants to pay five."""

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay somebody."""
        paid.append(amount)
        return f"paid {amount}"

    return Agent("clerk", tools=[pay], model=Played(pays))


async def _yes(_: ApprovalRequest) -> bool:
    return True


def _no(_: ApprovalRequest) -> bool:
    return False


def _because(_: ApprovalRequest) -> str:
    return "It is too much."


async def _later(answer: bool, _: ApprovalRequest) -> bool:
    return answer


@pytest.mark.parametrize(
    ("approve", "output", "paid"),
    [
        (_yes, "paid 5", [5]),
        (_no, "Denied by the person.", []),
        (_because, "Denied by the person. It is too much.", []),
        (lambda asked: _later(True, asked), "paid 5", [5]),
        (partial(_later, False), "Denied by the person.", []),
    ],
)
async def test_a_yes_a_no_and_a_reason_come_from_any_function(
    approve: ApprovalCallback, output: str, paid: list[int]
) -> None:
    done: list[int] = []
    async with Greenroom(in_memory=True) as house:
        result = await house.run(paying(done), "Pay five.", approve=approve)
    assert result.output == output
    assert done == paid


async def test_who_decides_is_told_which_call_it_is() -> None:
    heard: list[ApprovalRequest] = []

    async def approve(asked: ApprovalRequest) -> bool:
        heard.append(asked)
        return True

    async with Greenroom(in_memory=True) as house:
        result = await house.run(paying([]), "Pay five.", approve=approve)
    question = 'clerk wants to call pay with {"amount":5}'
    assert heard == [
        ApprovalRequest(agent="clerk", tool="pay", arguments={"amount": 5}, question=question, run_id=result.run_id)
    ]


async def _breaks(_: ApprovalRequest) -> bool:
    raise RuntimeError("nobody is there")


@pytest.mark.parametrize(
    ("approve", "why", "cause"),
    [
        (_breaks, "nobody is there", RuntimeError),
        (cast("ApprovalCallback", lambda _: None), "returned None", TypeError),
    ],
)
async def test_who_fails_to_decide_has_decided_nothing(
    approve: ApprovalCallback, why: str, cause: type[Exception]
) -> None:
    done: list[int] = []
    clerk = paying(done)
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(WorldFault, match=f"`approve` failed.*{why}") as fault:
            await house.run(clerk, "Pay five.", approve=approve)
        assert isinstance(fault.value.__cause__, cause)
        assert done == []
        (left,) = await house.runs()
        assert (left.run_id, left.state) == (fault.value.run_id, "waiting"), "it is neither denied nor approved"
        assert (await house.resume(clerk, left.run_id, approve=_yes)).output == "paid 5"


async def test_who_gives_nobody_to_decide_is_told_so_and_can_go_on_later() -> None:
    done: list[int] = []
    clerk = paying(done)
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(RefusedError, match="Pass an `approve`") as fault:
            await house.run(clerk, "Pay five.")
        result = await house.resume(clerk, fault.value.run_id, approve=_yes)
    assert result.output == "paid 5"
    assert done == [5]


async def test_what_somebody_else_decides_is_not_waited_for() -> None:
    asked = asyncio.Event()

    async def approve(_: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return False

    done: list[int] = []
    async with Greenroom(in_memory=True) as house, house.start(paying(done), "Pay five.", approve=approve) as run:
        waiting = asyncio.create_task(run.result())
        await asyncio.wait_for(asked.wait(), 10)
        (one,) = (await house.runtime.state(run.id)).approvals
        await house.runtime.ask(run.id, AnswerApproval(approval_id=one, answer="approved"))
        assert (await asyncio.wait_for(waiting, 10)).output == "paid 5"


async def test_a_run_that_is_ended_while_somebody_decides_is_over() -> None:
    asked = asyncio.Event()

    async def approve(_: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return False

    async with Greenroom(in_memory=True) as house, house.start(paying([]), "Pay five.", approve=approve) as run:
        waiting = asyncio.create_task(run.result())
        await asyncio.wait_for(asked.wait(), 10)
        await run.cancel()
        with pytest.raises(RefusedError, match=r"It is cancelled: cancelled by a person$"):
            await asyncio.wait_for(waiting, 10)


class Meeting:
    """A runtime in which an answer counts, or comes too late."""

    def __init__(self, *, late: bool) -> None:
        self.late = late

    async def ask(self, _: TeamId, __: AnswerApproval) -> None:
        """Take an answer."""
        await asyncio.sleep(0)
        if self.late:
            raise RefusedError(Rejection(code="answered", why="Somebody else has said no."))


QUESTION = Approval(
    approval_id=ApprovalId("a1"),
    step_id=STEP.step_id,
    agent_id=STEP.agent_id,
    task_id=TaskId("t1"),
    question="May I?",
    digest="",
    asked_of=None,
    asked_at=0,
    grant="allow command ls",
)


async def kept_of(*, late: bool, keep: Callable[[str], None]) -> None:
    """Somebody says *always*, and everything ends at once."""
    deciding = ApprovalHandler(cast("Runtime", Meeting(late=late)), lambda _: Always.always, keep)
    team = SimpleNamespace(team_id=TeamId("x"))
    deciding.ask_pending(
        cast("TeamState", SimpleNamespace(approvals={"a1": QUESTION}, steps={STEP.step_id: STEP}, team=team))
    )
    async with asyncio.timeout(20):
        assert await deciding.wait_for_decision()
        await deciding.close()


async def test_what_was_decided_before_somebody_looked_counts_once() -> None:
    deciding = ApprovalHandler(cast("Runtime", Meeting(late=False)), lambda _: True, lambda _: None)
    team, steps = SimpleNamespace(team_id=TeamId("x")), {STEP.step_id: STEP}
    deciding.ask_pending(cast("TeamState", SimpleNamespace(approvals={"a1": QUESTION}, steps=steps, team=team)))
    deciding.ask_pending(cast("TeamState", SimpleNamespace(approvals={}, steps=steps, team=team)))
    async with asyncio.timeout(20):
        assert [await deciding.wait_for_decision(), await deciding.wait_for_decision()] == [True, False]
        await deciding.close()


@pytest.mark.parametrize("late", [True, False])
async def test_an_always_is_kept_only_if_it_was_the_word_that_counts(late: bool) -> None:
    kept: list[str] = []
    await kept_of(late=late, keep=kept.append)
    assert kept == ([] if late else ["allow command ls"])


async def test_an_always_that_cannot_be_kept_is_said(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: str) -> None:
        raise WorldFault("There is no room.")

    await kept_of(late=False, keep=fails)
    assert "The permanent approval applies to this run only. There is no room." in caplog.text
