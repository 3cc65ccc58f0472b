"""Where a call would carry something: hosts, servers, and without a sandbox commands."""

from __future__ import annotations

import pytest

from greenroom.app.toolset.exposure import LONGEST, outward
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import BUILT_IN, Target, ToolCard
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect


def card(group: Group = "command", source: str = BUILT_IN, effect: Effect = "effectful") -> ToolCard:
    return ToolCard(spec=ToolSpec(name="it", description="It."), group=group, source=source, effect=effect)


def of_line(line: str, reach: tuple[str, ...] | None = None) -> tuple[str, ...]:
    return outward(card(), (Target(kind="command", value=line),), lambda: reach)


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
    assert outward(card(), named, lambda: ()) == ("host pypi.org",)


def test_two_long_lines_that_begin_alike_are_two_places() -> None:
    first, second = of_line(f"ssh a {'x' * 200}1"), of_line(f"ssh a {'x' * 200}2")
    assert first != second
    assert len(first[0]) < LONGEST + 20


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
    assert outward(made, targets) == places
