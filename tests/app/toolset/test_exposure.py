"""Untrusted text, private data and a way out never come together unasked; where a call goes, and what it reads."""

from __future__ import annotations

import pytest

from greenroom.app.toolset.exposure import (
    MAX_DESTINATION_CHARS,
    Exposure,
    describe_release,
    find_destinations,
    find_exposure,
    origins_of,
    tighten_ruling,
)
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import BUILT_IN, PolicyDecision, Target, ToolCard
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import ApprovalScope
from greenroom.core.state.origin import Labels
from greenroom.core.state.spec import ToolGroup
from greenroom.core.state.step import Effect, Step
from greenroom.core.state.team_state import TeamState
from tests.app.toolset.test_pipeline import Say, Says
from tests.core.house import ANN, HUE, T1, House, thread, tool
from tests.core.rules.test_origins import reading

PAGE, FILE = "web:evil.example", "file:README.md"
ALLOW = PolicyDecision(verdict="allow", rule="allow host a.example")


class Sends(Say):
    """A tool that sends what it is given to a host."""

    def targets(self, _: object) -> tuple[Target, ...]:
        """There."""
        return (Target(kind="host", value="a.example:443"),)


def asking(house: House, text: str = "x") -> tuple[TeamState, Step]:
    house.queue(ANN, tool("say", {"text": text}))
    return house.state, list(house.state.steps_of(ANN))[-1]


def house_that_has_read(*origins: str) -> House:
    return reading(House.furnished(), ANN, origins=origins) if origins else House.furnished()


@pytest.fixture
def sends() -> ToolPipeline:
    """It may, as far as the policy goes."""
    return ToolPipeline(Sends(), Says(ALLOW))


@pytest.mark.parametrize("origins", [(), (PAGE,), ("description:git", "web:b.example")])
def test_two_of_the_three_need_nobody(sends: ToolPipeline, origins: Labels) -> None:
    terms = sends.terms(*asking(house_that_has_read(*origins)))
    assert (terms.verdict, terms.outward, terms.release) == ("allow", ("host a.example",), "")
    assert terms.exposed_at is None


def test_the_third_needs_a_person_who_reads_why(sends: ToolPipeline) -> None:
    house = house_that_has_read(PAGE, FILE)
    terms = sends.terms(*asking(house))
    assert (terms.verdict, terms.grant, terms.release) == ("ask", "", "host a.example")
    assert terms.question == (
        "ann wants to use say. This conversation has read what others may have written (the web at evil.example, "
        "the file README.md), and holds what is private (the file README.md); this would go to `a.example`."
    )
    assert terms.exposed_at == house.now


def test_what_stays_here_needs_nobody_whatever_was_read() -> None:
    terms = ToolPipeline(Say(), Says(ALLOW)).terms(*asking(house_that_has_read(PAGE, FILE)))
    assert (terms.verdict, terms.outward) == ("allow", ())


def test_notify_is_asked_and_deny_stays_deny() -> None:
    state, step = asking(house_that_has_read(FILE))
    told = ToolPipeline(Sends(), Says(PolicyDecision(verdict="notify"))).terms(state, step)
    denied = ToolPipeline(Sends(), Says(PolicyDecision(verdict="deny", why="No."))).terms(state, step)
    assert (told.verdict, denied.verdict) == ("ask", "deny")
    assert "which is private too" in told.question


def test_who_is_asked_anyway_is_told_too_and_agrees_to_both_at_once() -> None:
    state, step = asking(house_that_has_read(FILE))
    ruling = PolicyDecision(verdict="ask", why="No rule allows it.", grant="allow host a.example")
    terms = ToolPipeline(Sends(), Says(ruling)).terms(state, step)
    assert terms.question.startswith("ann wants to use say. No rule allows it.\nThis conversation has read")
    assert (terms.grant, terms.release) == ("allow host a.example", "host a.example")
    each = ToolPipeline(Sends(), Says(PolicyDecision(verdict="ask", why="Each is confirmed."))).terms(state, step)
    assert each.release == "", "a yes for the run would change nothing"


def test_a_tool_that_asks_itself_says_it_too() -> None:
    state, step = asking(house_that_has_read(FILE))
    own = ToolPipeline(Sends(verdict="ask"), Says(ALLOW)).terms(state, step)
    assert "This conversation has read" in own.question


def answered(house: House, sends: ToolPipeline, scope: ApprovalScope) -> None:
    house.start(ANN, terms=sends.terms(*asking(house)))
    (name,) = house.state.approvals
    house.do(AnswerApproval(approval_id=name, answer="approved", scope=scope), by=HUE)
    house.start(ANN, terms=sends.terms(house.state, next(house.state.steps_of(ANN))))
    house.finish(ANN)


@pytest.mark.parametrize(("scope", "verdict"), [("run", "allow"), ("once", "ask")])
def test_a_yes_for_the_run_covers_later_calls_and_a_yes_for_once_does_not(
    sends: ToolPipeline, scope: ApprovalScope, verdict: str
) -> None:
    house = house_that_has_read(FILE)
    answered(house, sends, scope)
    assert sends.terms(*asking(house)).verdict == verdict


def test_a_yes_from_before_the_conversation_had_both_does_not_count(sends: ToolPipeline) -> None:
    house = house_that_has_read(FILE)
    answered(house, sends, "run")
    later = reading(house.later(10), AgentId("bob"), origins=(FILE,)).queue(AgentId("bob"), tool("say", {"text": "x"}))
    bobs = list(later.state.steps_of(AgentId("bob")))[-1]
    assert sends.terms(later.state, bobs).verdict == "ask"


def test_where_nobody_is_there_it_is_not_done() -> None:
    terms = ToolPipeline(Sends(), Says(ALLOW), unattended=True).terms(*asking(house_that_has_read(FILE)))
    assert terms.verdict == "deny"
    assert "this would go to `a.example`, and no person can approve it" in terms.rule


def test_of_many_labels_a_person_reads_the_first() -> None:
    house = house_that_has_read(*(f"web:{number}.example" for number in range(7)), FILE)
    found = find_exposure(*asking(house), ("host a.example",))
    assert found is not None
    assert "the web at 3.example and 4 more" in found.why


def test_a_conversation_that_is_over_has_nothing_to_lose() -> None:
    state, step = asking(House.furnished())
    gone = TeamState(team=state.team)
    assert find_exposure(gone, step, ("host a.example",)) is None
    assert tighten_ruling(ALLOW, None) is ALLOW
    assert describe_release(ALLOW, Exposure(why="", places=("a", "b"))) == "a\nb"


@pytest.mark.parametrize(
    ("group", "source", "targets", "labels"),
    [
        ("read", BUILT_IN, [Target(kind="path", value="a.py")], ("file:a.py",)),
        ("web", BUILT_IN, [Target(kind="host", value="Docs.Python.org:443")], ("web:docs.python.org",)),
        ("web", BUILT_IN, [], ("web:it",)),
        ("command", BUILT_IN, [Target(kind="command", value="cat x | head")], ("command:cat",)),
        ("command", BUILT_IN, [Target(kind="command", value=" ")], ("command:it",)),
        ("mcp", "mcp:github", [Target(kind="tool", value="it")], ("mcp:github",)),
        ("read", "/home/me/it.py", [Target(kind="tool", value="it")], ("tool:it",)),
        ("read", "program", [Target(kind="tool", value="it")], ()),
        ("web", "program", [Target(kind="tool", value="it")], ("web:it",)),
        ("human", BUILT_IN, [Target(kind="tool", value="it")], ()),
        ("memory", BUILT_IN, [Target(kind="tool", value="it")], ()),
    ],
)
def test_what_a_call_reads_follows_from_what_is_known_of_it(
    group: ToolGroup, source: str, targets: list[Target], labels: Labels
) -> None:
    card = ToolCard(spec=ToolSpec(name="it", description="It."), group=group, source=source)
    assert origins_of(card, targets) == labels


def test_the_terms_of_a_call_name_what_it_will_have_read() -> None:
    house = House.furnished()
    terms = ToolPipeline(Sends(), Says(ALLOW)).terms(*asking(house))
    assert terms.origins == ("web:a.example",)
    house.start(ANN, terms=terms)
    house.finish(ANN, outcome="failed")
    assert house.state.threads[thread(ANN, T1)].origins == ("web:a.example",)


def card(group: ToolGroup = "command", source: str = BUILT_IN, effect: Effect = "effectful") -> ToolCard:
    return ToolCard(spec=ToolSpec(name="it", description="It."), group=group, source=source, effect=effect)


def of_line(line: str, reach: tuple[str, ...] | None = None) -> tuple[str, ...]:
    return find_destinations(card(), (Target(kind="command", value=line),), lambda: reach)


@pytest.mark.parametrize("line", ["git push origin", "ls -l; x", "for x in a; do y; done"])
def test_a_command_goes_where_all_commands_get_to_and_without_a_sandbox_anywhere(line: str) -> None:
    assert of_line(line) == (f"command {line}",)
    assert of_line(line, ()) == ()
    assert of_line(line, ("PyPI.org:443", "a.example:8080")) == ("host pypi.org", "host a.example:8080")


@pytest.mark.parametrize("line", ["ls -l", "cat a b", "echo ssh", "rm -f 'a b'"])
def test_a_plain_command_that_reaches_no_host_stays_with_a_sandbox_and_without(line: str) -> None:
    assert of_line(line) == of_line(line, ()) == of_line(line, ("pypi.org",)) == ()


def test_a_command_that_names_hosts_goes_there() -> None:
    named = (Target(kind="command", value="pip install x"), Target(kind="host", value="pypi.org"))
    assert find_destinations(card(), named, lambda: ()) == ("host pypi.org",)


def test_two_long_lines_that_begin_alike_are_two_places() -> None:
    first, second = of_line(f"ssh a {'x' * 200}1"), of_line(f"ssh a {'x' * 200}2")
    assert first != second
    assert len(first[0]) < MAX_DESTINATION_CHARS + 20


@pytest.mark.parametrize(
    ("made", "targets", "places"),
    [
        (card("web", effect="pure"), (Target(kind="host", value="A.example:443"),), ("host a.example",)),
        (card("web", effect="pure"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("browser"), (), ("tool it",)),
        (card("mcp", "mcp:github", "pure"), (Target(kind="tool", value="it"),), ("server github",)),
        (card("command", "/home/me/tools/deploy.py"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("read", "/home/me/tools/count.py", "pure"), (Target(kind="tool", value="it"),), ()),
        (card("command", "program"), (Target(kind="tool", value="it"),), ()),
        (card("web", "program"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("edit", effect="keyed"), (Target(kind="path", value="a", writes=True),), ()),
        (card("human", effect="pure"), (Target(kind="tool", value="it"),), ()),
    ],
)
def test_a_tool_goes_out_by_what_it_touches_by_its_group_and_by_who_made_it(
    made: ToolCard, targets: tuple[Target, ...], places: tuple[str, ...]
) -> None:
    assert find_destinations(made, targets) == places
