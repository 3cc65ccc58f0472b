"""What is said of a verdict, and what follows from it: the end, or another turn for the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from greenroom.abilities.checks.undone import undone
from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.propose_plan import NAME as PLANS
from greenroom.app.checks.idle import UNASKED, acted_elsewhere
from greenroom.app.checks.receipts import DELIVER, EDITS, STANDS, VERDICT
from greenroom.app.checks.verdict import Delivered, Verdict
from greenroom.app.talks.wanted import wanted_in
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, Work

UNCHANGED: Final = "It set out to change files, and none is different."

TRIES: Final = 3
"""How often an agent hears what is missing."""


def with_remarks(found: Verdict, stopped: Sequence[str]) -> Verdict:
    """What ran in the background when the work was done is no part of it; whoever began it may want to know."""
    if not stopped:
        return found
    return evolve(found, remarks=(*found.remarks, f"Ended before it was judged: {', '.join(stopped)} (background)."))


def as_it_was(found: Verdict, steps: Sequence[Step], delivered: Delivered) -> Verdict:
    """Where nothing was changed, there is nothing to check. It counts as an answer where a person has asked a question
    and nothing in it is untrue; else it does where something was done elsewhere, and it speaks of nothing else."""
    missing, claims = delivered.left_out, found.claims
    if not wanted_in(steps).question:
        elsewhere = acted_elsewhere(steps)
        meant = any(_means_to_change(one) for one in steps)
        claims = (*claims, *undone(delivered.says, elsewhere=elsewhere), *((UNCHANGED,) if meant else ()))
        missing = missing if elsewhere else (UNASKED, *missing)
    state: Literal["verified", "unproven"] = "unproven" if claims or missing else "verified"
    return evolve(found, state=state, receipts=(), missing=missing, changed=(), only_tests=False, claims=claims)


def _means_to_change(step: Step) -> bool:
    return step.work.executor in EDITS or (step.work.executor == PLANS and bool(_given(step).get("files")))


def _given(step: Step) -> Data:
    return step.work.instruction_content or {}


def as_kept(found: Verdict) -> Data:
    """A verdict as the log has it."""
    return {
        "state": found.state,
        "missing": list(found.missing),
        "changed": list(found.changed),
        "claims": list(found.claims),
        "remarks": list(found.remarks),
        STANDS: stands(found),
        "receipts": [
            {"check": one.check, "outcome": one.outcome, "exit": one.exit, "tree": one.tree, "step": one.step}
            for one in found.receipts
        ],
    }


def spoken(found: Verdict) -> str:
    """A verdict as an agent reads it."""
    if found.verified and not found.receipts:
        return "No file was changed, so nothing was checked: it counts as an answer."
    if found.verified:
        return "Verified: every check ran on this tree, and nothing newly fails."
    parts = [
        *(("Not proven:", *(f"- {one}" for one in found.missing)) if found.missing else ()),
        *(("Changed by the work itself:", *(f"- {one}" for one in found.changed)) if found.changed else ()),
        *(("Said, and not so:", *(f"- {one}" for one in found.claims)) if found.claims else ()),
        "Mend what you can, and say the rest as it is. A test that you had to change: say which and why.",
    ]
    return "\n".join(parts)


def stands(found: Verdict) -> bool:
    """Whether what was said may stand though it is not proven: nothing in it is untrue, and nothing fails. There is
    nothing to check, or tests are not what they were, and whether they should be a person sees in the diff."""
    idle = found.missing == (UNASKED,)
    return not found.verified and not found.claims and (idle or (found.only_tests and not found.missing))


def follows(step: Step, delivered: Delivered, found: Verdict, steps: Sequence[Step]) -> Consequence:
    """The end, or another turn for an agent that can do something about it: without any check, it cannot. That it has
    changed tests it hears once: it may have been asked to."""
    said = delivered.says
    before = [one for one in steps if one.work.executor == DELIVER and one.thread_id == step.thread_id]
    heard = stands(found) and any(_told_of_judges(one) for one in before)
    if found.verified:
        return ended(step, said, tuple(f"{one.check}: {one.outcome}, step {one.step}" for one in found.receipts))
    if len(before) + 1 < TRIES and not heard and _can_mend(delivered, found):
        again = Work(type="skill", executor="converse", intention="Mend what is missing.")
        return QueueSteps(agent_id=step.agent_id, works=(again,), place="next")
    if stands(found):
        return ended(step, said, failed=True)
    why = "\n".join(f"- {one}" for one in (*found.missing, *found.changed, *found.claims))
    return ended(step, f"{said}\n\nNot verified:\n{why}".strip(), failed=True)


def _told_of_judges(step: Step) -> bool:
    held = (step.result or {}).get(VERDICT)
    return isinstance(held, Mapping) and bool(held.get("changed"))


def _can_mend(delivered: Delivered, found: Verdict) -> bool:
    return bool(found.claims or found.changed or found.receipts or delivered.broken or delivered.left_out)
