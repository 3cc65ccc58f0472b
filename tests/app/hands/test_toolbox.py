"""Which tools an agent has: those it names, those of its groups, and of these what is allowed."""

from pathlib import Path

import pytest

from greenroom.abilities.tools.ask_user import AskUser
from greenroom.app.toolset.policy import RulesFile
from greenroom.app.toolset.toolset import toolbox_of
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.state.spec import AgentSpec

READS = ("read_code", "list_files", "search_files", "command_output", "read_output")


@pytest.mark.parametrize(
    ("spec", "tools"),
    [
        (AgentSpec(name="a"), ()),
        (AgentSpec(name="a", tools=("patch",)), ("patch", "read_output")),
        (AgentSpec(name="a", groups=("read",)), READS),
        (
            AgentSpec(name="a", tools=("patch", "read_code"), groups=("human",)),
            ("patch", "read_code", "ask_user", "read_output"),
        ),
        (AgentSpec(name="a", tools=("fly",)), ("fly",)),
    ],
)
def test_an_agent_has_what_it_names_and_what_is_in_its_groups(
    tmp_path: Path, spec: AgentSpec, tools: tuple[str, ...]
) -> None:
    assert toolbox_of(tmp_path).equipped(spec).tools == tools


def test_who_says_nothing_gets_the_default_and_nobody_more_than_is_allowed(tmp_path: Path) -> None:
    tools = toolbox_of(tmp_path)
    assert tools.equipped(AgentSpec(name="a"), default=("patch",)).tools == ("patch", "read_output")
    assert tools.equipped(AgentSpec(name="a", groups=("edit",)), only=("rewrite",)).tools == ("rewrite", "read_output")


def test_of_two_tools_with_one_name_the_first_stays(tmp_path: Path) -> None:
    tools = toolbox_of(tmp_path)
    again = type(tools)([*tools, *tools])
    assert list(again) == list(tools)
    with pytest.raises(Refused, match="Did you mean 'patch'"):
        tools.named("pacth")


def test_rules_are_kept_by_workspace_and_what_cannot_be_read_is_said_with_its_line(tmp_path: Path) -> None:
    file = RulesFile(tmp_path / "config" / "permissions")
    here, there = tmp_path / "here", tmp_path / "there"
    assert file.add("allow  command npm   test", here)
    assert not file.add("allow command npm test", here)
    assert file.add("deny path secret/**", None)
    assert file.of(here) == ("deny path secret/**", "allow command npm test")
    assert file.of(there) == ("deny path secret/**",)
    assert file.remove("deny path secret/**", None)
    assert not file.remove("deny path secret/**", None)
    assert file.path.stat().st_mode & 0o077 == 0
    file.path.write_text("# mine\n\nallow command ls\nallow nothing\n", encoding="utf-8")
    with pytest.raises(WorldFault, match="permissions, line 4: "):
        file.of(here)


@pytest.mark.req("MA-57")
def test_agents_are_told_to_ask_a_person_as_little_as_they_can() -> None:
    told = AskUser().card.spec.description
    for said in ("what only they can know or decide", "as few questions as possible", "all at once"):
        assert said in told
    assert "not for what you can find out yourself" in told
