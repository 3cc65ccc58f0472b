"""What counts at the end of a run in which nobody has changed a file, though they could have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from greenroom.abilities.checks.claims import Facts, unproven
from greenroom.abilities.checks.undone import undone
from greenroom.app.checks.receipts import ASKING, BASELINE, DELIVER, MAY_CHANGE
from greenroom.app.talks.wanted import wanted_in
from greenroom.core.state.step import SIDE_EFFECTS, Step

LOOKS: Final = frozenset(
    {
        *("read_code", "search_files", "list_files", "read_output", "read_artifact", "retrieve_memory", "ask_user"),
        *("web_search", "web_fetch", "propose_plan"),
    }
)
"""Tools that leave everything as it is. Who has used another one may have done what they say, elsewhere."""


IN_THE_COPY: Final = LOOKS | MAY_CHANGE | {"run_checks", "command_output", "stop_command", "prepare", BASELINE, DELIVER}
"""Tools of which nothing is left anywhere but in the files of a job."""


UNASKED: Final = "Nothing was changed, so there is nothing that a check could prove."


def acted_elsewhere(steps: Sequence[Step]) -> bool:
    """Whether a job has used a tool that knows nothing of its files, and that does more than to look."""
    return _acted(steps, IN_THE_COPY)


def idle_doubts(steps: Sequence[Step], said: str) -> tuple[str, ...]:
    """Why what was `said` after these steps, none of which has changed a file, does not count. Where a person has asked
    a question, or something was done elsewhere, it may count as an answer, and claims no check."""
    claims = unproven(said, Facts(exists=lambda _: True))
    if wanted_in(steps).question or _acted(steps, LOOKS):
        return claims
    return (UNASKED, *claims, *undone(said), ASKING)


def _acted(steps: Sequence[Step], known: Collection[str]) -> bool:
    """Whether one of these has done something, by another tool than those that are `known`."""
    tools = (one for one in steps if one.work.type == "tool" and one.work.executor not in known)
    done = (one for one in tools if one.state in ("finished", "uncertain"))
    return any(one.terms is None or one.terms.effect in SIDE_EFFECTS for one in done)
