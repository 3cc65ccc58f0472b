"""A person who wants to be asked about every call is asked, and never about what is forbidden anyway."""

from collections.abc import Collection
from typing import Literal

import pytest

from greenroom.app.toolset.policy import Confirming
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import record
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.policy import Ruling
from greenroom.core.ports.tool import Target, ToolCard

CARD = ToolCard(spec=ToolSpec(name="read_code", description="Reads."), group="read")
ANN, BOB = AgentId("ann"), AgentId("bob")


@record
class Says:
    """Decides always the same."""

    ruling: Ruling

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> Ruling:
        """That."""
        return self.ruling


@pytest.mark.req("AG-135")
@pytest.mark.parametrize(
    ("verdict", "becomes"), [("allow", "ask"), ("notify", "ask"), ("ask", "ask"), ("deny", "deny")]
)
def test_what_is_not_forbidden_is_asked_and_cannot_be_agreed_to_for_good(
    verdict: Literal["allow", "notify", "ask", "deny"], becomes: str
) -> None:
    own = Ruling(verdict=verdict, why="So.", grant="allow tool read_code")
    ruling = Confirming(Says(ruling=own)).decide(ANN, CARD, (), ())
    assert (ruling.verdict, ruling.grant) == (becomes, own.grant if verdict == "deny" else "")
    assert ruling.why == ("So." if verdict in ("ask", "deny") else "Every call is confirmed.")


def test_a_question_names_what_is_touched_and_only_some_are_asked_about() -> None:
    policy = Confirming(Says(ruling=Ruling(verdict="allow")), lambda agent: agent == ANN)
    touched = (Target(kind="path", value="a\x1b[2J.py"), Target(kind="tool", value="read_code"))
    assert policy.decide(ANN, CARD, touched).why == r"It is about `a\x1b[2J.py`. Every call is confirmed."
    assert policy.decide(BOB, CARD, touched).verdict == "allow"
