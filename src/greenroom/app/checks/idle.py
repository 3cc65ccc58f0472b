"""What is said at the end of a run that no check judges, by somebody who could have changed files and has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.abilities.checks.claims import Facts, unproven
from greenroom.abilities.checks.undone import undone
from greenroom.app.checks.receipts import BASELINE, DELIVER, MAY_CHANGE
from greenroom.core.state.step import Step

LOOKS: Final = frozenset(
    {
        *("read_code", "search_files", "list_files", "read_output", "read_artifact", "retrieve_memory", "ask_user"),
        *("web_search", "web_fetch", "propose_plan"),
    }
)
"""Tools that leave everything as it is. Who has used another one may have done what they say, elsewhere."""


IN_THE_COPY: Final = LOOKS | MAY_CHANGE | {"run_checks", "command_output", "stop_command", "prepare", BASELINE, DELIVER}
"""Tools of which nothing is left anywhere but in the files of a job."""


def acted_elsewhere(steps: Sequence[Step]) -> bool:
    """Whether a job has used a tool that knows nothing of its files."""
    return any(one.work.type == "tool" and one.work.executor not in IN_THE_COPY for one in steps)


def idle_claims(steps: Sequence[Step], said: str) -> tuple[str, ...]:
    """What nothing proves of what was `said` after these steps, none of which has changed a file."""
    claims = unproven(said, Facts(exists=lambda _: True))
    did = any(one.work.type == "tool" and one.work.executor not in LOOKS and one.state == "finished" for one in steps)
    return claims if did else (*claims, *undone(said))
