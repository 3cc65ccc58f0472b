"""The file of a routing team: what it may say, and what its agents are."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.organisation.charter import find_charter, list_charters
from greenroom.app.teams.team_file import MEMORY_TOOLS, RoutingTeam, find_team_file, list_team_items, read_team
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.state.spec import AgentSpec, Handoff

ANN = '[[agents]]\nname = "ann"\ndescription = "Leads."\nsystem_prompt = "You lead."\nauto_complete = true\n'
BOB = '[[agents]]\nname = "bob"\nsystem_prompt = "You help."\nauto_complete = true\nuse_tools = ["read_code"]\n'
HEAD = 'kind = "routing"\n'


def read(folder: Path, *parts: str, is_own: bool = True) -> RoutingTeam:
    path = folder / "ship.toml"
    path.write_text("".join(parts))
    return read_team(path, is_own=is_own)


def members(folder: Path, *parts: str) -> dict[str, AgentSpec]:
    return {member.name: member for member in read(folder, HEAD, *parts).routing.members}


@pytest.mark.req("MA-62", "MA-63", "MA-64", "MA-69", "MA-70", "MA-8", "MA-38")
def test_the_agents_of_a_team_are_read_in_jarvis_words_and_the_main_one_comes_first(tmp_path: Path) -> None:
    team = read(tmp_path, HEAD, 'main_agent = "bob"\nmax_hops = 5\n', ANN, BOB)
    bob, ann = team.routing.members
    assert (team.name, team.routing.main, team.routing.max_hops) == ("ship", "bob", 5)
    assert (ann.name, ann.description, ann.prompt) == ("ann", "Leads.", "You lead.")
    assert (bob.name, bob.tools) == ("bob", ("read_code",))
    assert read(tmp_path, HEAD, ANN, BOB).routing.main == "ann", "the first one, if none is named"


@pytest.mark.req("MA-9", "MA-10", "MA-33")
def test_each_agent_has_the_four_handlers_and_the_core_tools(tmp_path: Path) -> None:
    ann = members(tmp_path, ANN)["ann"]
    assert ann.turn.protocols == ("tool_call", "patch", "rewrite", "send_message")
    assert ann.tools == (*DEFAULT_TOOLS, *MEMORY_TOOLS)
    handlers = 'output_handler = ["ToolRegistry", "MultiAgent"]\n'
    assert members(tmp_path, ANN, handlers)["ann"].turn.protocols == ("tool_call", "send_message")


@pytest.mark.req("MA-35", "MA-66")
def test_only_the_main_agent_may_end_a_task_by_itself(tmp_path: Path) -> None:
    found = members(tmp_path, ANN, BOB)
    assert (found["ann"].turn.auto_complete, found["bob"].turn.auto_complete) == (True, False)


@pytest.mark.req("MA-36")
def test_the_common_prompt_stands_before_the_own_one(tmp_path: Path) -> None:
    plain, common = members(tmp_path, ANN)["ann"], members(tmp_path, 'common_system_prompt = "Be brief."\n', ANN)["ann"]
    assert common.prompt == "Be brief.\n\nYou lead."
    assert common.version != plain.version


@pytest.mark.req("MA-65", "MA-67", "MA-68", "MA-78", "MA-79")
def test_how_an_agent_hands_over_is_said_for_it_or_for_all(tmp_path: Path) -> None:
    own = "in_multi_agent = true\nsummary_on_send = false\nclear_after_send_message = true\nclear_after_turns = 3\n"
    found = members(tmp_path, 'handoff_summary_prompt = "Name the risks."\narbiter = true\n', ANN, BOB, own)
    assert found["ann"].handoff == Handoff(summary_prompt="Name the risks.", arbiter=True)
    assert found["bob"].handoff == Handoff(
        summary=False, summary_prompt="Name the risks.", clear=True, clear_turns=3, arbiter=True
    )


@pytest.mark.req("MA-62", "MA-70")
@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((ANN,), "it describes no routing team. That needs the line: kind = "),
        ((HEAD, 'color = "red"\n', ANN), "a routing team has no `color`. There are: `kind`"),
        ((HEAD, "max_hops = 0\n", ANN), "`max_hops` must be"),
        ((HEAD,), "it names no agents."),
        ((HEAD, 'agents = "ann"\n'), "it names no agents."),
        ((HEAD, '[[agents]]\nsystem_prompt = "x"\n'), "agent 1: `name` is missing. Each agent of a team needs one."),
        ((HEAD, '[[agents]]\nname = "x"\n'), "agent 1: `system_prompt` is missing"),
        ((HEAD, ANN, BOB, ANN), "agent 3: 'ann' can be taken for the agent 'ann'. Rename one."),
        ((HEAD, 'main_agent = "bib"\n', ANN, BOB), "There is no agent 'bib' to be the main one. Did you mean `bob`?"),
        ((HEAD, ANN, BOB, 'sumary_prompt = "x"\n'), "agent 2: `sumary_prompt` is not a key of an agent."),
        ((HEAD, ANN, 'calls = ["bob"]\n', BOB), "agent 1: `calls` has no effect in a routing team"),
        ((HEAD, ANN, "in_multi_agent = false\n"), "agent 1: `in_multi_agent`"),
        ((HEAD, "agents = ["), "ship.toml"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, parts: tuple[str, ...], said: str) -> None:
    with pytest.raises(WorldFault) as fault:
        read(tmp_path, *parts)
    assert said in str(fault.value)
    assert "ship.toml" in str(fault.value) or "bib" in said


def test_a_file_that_comes_with_a_workspace_cannot_raise_limits(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD, ANN, "rounds = 5000\n").routing.members[0].turn.rounds == 5000
    with pytest.raises(WorldFault, match="rounds"):
        read(tmp_path, HEAD, ANN, "rounds = 5000\n", is_own=False)


def test_a_team_is_found_by_name_or_path_and_is_no_organisation(tmp_path: Path) -> None:
    folder = tmp_path / ".greenroom" / "teams"
    folder.mkdir(parents=True)
    (folder / "ship.toml").write_text(HEAD + ANN)
    (folder / "shop.toml").write_text('people = ["pia"]\n')
    assert find_team_file(tmp_path, tmp_path, "ship") == folder / "ship.toml"
    assert find_team_file(tmp_path, folder, "ship.toml") == folder / "ship.toml"
    with pytest.raises(
        RefusedError, match=r"There is no routing team or file 'shap'. There are: ship, pair\. Describe"
    ):
        find_team_file(tmp_path, tmp_path, "shap")
    assert list_charters(tmp_path) == ("shop",)
    with pytest.raises(RefusedError, match="It is a routing team: greenroom run --team-file ship"):
        find_charter(tmp_path, "ship")
    (item,) = list_team_items(tmp_path)
    assert (item.kind, item.name) == ("team", "ship")
    assert item.shown.startswith(".greenroom/teams/ship.toml · ann · tools: ask_user, clear_memory, ")
    (folder / "ship.toml").write_text(HEAD)
    assert list_team_items(tmp_path) == ()


def test_a_pair_of_coder_and_reviewer_is_built_in(tmp_path: Path) -> None:
    team = read_team(find_team_file(tmp_path, tmp_path, "pair"), is_own=True)
    assert [member.name for member in team.routing.members] == ["coder", "reviewer"]
    assert "patch" not in team.routing.members[1].tools


def test_an_unknown_tool_is_named_with_its_agent(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match="the agent 'bob' names the tool 'read_code', which does not exist"):
        read(tmp_path, HEAD, BOB).refuse_missing_tools(["patch"])
