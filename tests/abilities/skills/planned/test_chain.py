"""The chain of a long-tail tool, found backwards in what was done: a table, and every way to interleave."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.skills.planned.prompt import GAPS, chain
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.state.step import Step, StepType, Work

SKILLS = {"i": "instruction_generation", "s": "send_message", "t": "think", "p": "process_message", "r": "reflection"}


def steps(signs: str) -> list[Step]:
    """`A` and `B` call a tool, `a` and `b` decide to go on with it, `x` to end with A, `?` could not be read."""
    return [_step(number, sign) for number, sign in enumerate(signs)]


def _step(number: int, sign: str) -> Step:
    decision = sign in "abx?"
    tool = {"x": "A", "?": "A"}.get(sign, sign.upper())
    type_: StepType = "tool" if sign in "AB" else "skill"
    name = tool if sign in "AB" else "tool_decision" if decision else SKILLS[sign]
    made = {"tool_decision": {"decision": "end" if sign == "x" else "continue"}} if sign in "abx" else None
    return Step(
        step_id=StepId(f"ann#{number}"),
        agent_id=AgentId("ann"),
        thread_id=ThreadId("ann@t1"),
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=None,
        work=Work(type=type_, executor=name, text_content=tool if decision else f"goal {number}"),
        queued_at=0,
        state="failed" if sign == "?" else "finished",
        result=made,
    )


def found(signs: str, tool: str = "A") -> str:
    """The places of the chain as the signs that stand there, in their order."""
    all_ = steps(signs)
    return "".join(signs[all_.index(one)] for one in chain(all_, tool))


TABLE = [
    ("", ""),
    ("tir", ""),
    ("A", "A"),
    ("iA", "A"),
    ("iAaiA", "AaA"),
    ("iAaiAaiA", "AaAaA"),
    ("iAasiA", "AaA"),  # a message in between
    ("iAsaiA", "AaA"),
    ("iAatiA", "A"),  # a thought in between: something else
    ("iAtaiA", "A"),
    ("iApaiA", "A"),
    ("iAaiAx", "AaA"),  # its own decision is made behind the newest call
    ("iAxiA", "A"),  # a chain that was ended is another one
    ("iAaiAxiAaiA", "AaA"),
    ("iAa", "A"),
    ("iAa?", "A"),
    ("iA?aiA", "AaA"),  # a decision that could not be read was made again
    ("iBbiAaiBbiA", "A"),  # two chains in turn: a foreign decision ends it
    ("iAaiBbiA", "A"),
    ("iAbiA", "A"),  # what was decided about another tool
    ("iA?iA", "A"),  # a decision that could not be read, and was not made again
    ("iA?iAaiA", "AaA"),
    ("iAAaA", "AaA"),  # what was called without a decision before is another one
    ("aA", "A"),  # a decision about nothing
    ("saA", "A"),
]


@pytest.mark.req("MAS-212", "MAS-213", "MAS-214", "MAS-215", "MAS-216")
@pytest.mark.parametrize(("signs", "wanted"), TABLE)
def test_the_newest_chain_is_recovered(signs: str, wanted: str) -> None:
    assert found(signs) == wanted


def test_of_two_interleaved_chains_each_tool_has_its_own_newest_part() -> None:
    assert found("iAaiABbiB", "B") == "BbB"
    assert found("iAaiABbiB", "A") == "AaA"


_SIGNS = st.text(alphabet="ABabx?istpr", max_size=30)


@pytest.mark.req("MAS-212", "MAS-216")
@given(_SIGNS)
def test_a_chain_is_calls_and_decisions_in_turn_with_nothing_but_gaps_between(signs: str) -> None:
    all_ = steps(signs)
    parts = chain(all_, "A")
    kinds = ["A" if one.work.type == "tool" else "a" for one in parts]
    assert kinds == ["A" if place % 2 == 0 else "a" for place in range(len(parts))]
    assert len(parts) % 2 == 1 or not parts
    assert (not parts) == ("A" not in signs)
    assert _between(all_, parts) <= GAPS | {"tool_decision"}
    if parts:
        assert all_.index(parts[-1]) == signs.rindex("A")


def _between(all_: Sequence[Step], parts: Sequence[Step]) -> set[str]:
    if not parts:
        return set()
    span = all_[all_.index(parts[0]) : all_.index(parts[-1])]
    return {one.work.executor for one in span if one not in parts}


@given(_SIGNS, st.text(alphabet="istpr", max_size=5))
def test_what_comes_after_the_newest_call_changes_nothing(signs: str, more: str) -> None:
    assert [one.step_id for one in chain(steps(signs), "A")] == [one.step_id for one in chain(steps(signs + more), "A")]
