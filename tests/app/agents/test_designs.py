"""Agents in the words of the designs that Greenroom unites, with what those take for granted."""

from __future__ import annotations

import pytest

from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.core.state.spec import Cooperation
from tests.app.agents.folders import Folders, written

JARVIS = "design: jarvis\n"


FLOW = "design: artifactflow\nname: ann\ndescription: Searches.\n"


@pytest.mark.req("AF-3", "AF-4", "AF-5", "AF-6", "AF-7", "AF-8", "AF-9", "AF-10")
def test_an_artifactflow_agent_has_its_designs_defaults(folders: Folders) -> None:
    spec = folders.agent(FLOW, "")
    assert (spec.name, spec.description, spec.capabilities, spec.tools) == ("ann", "Searches.", (), ())
    assert spec.llm_config == {"model": "dashscope:qwen-plus", "streaming": False, "temperature": 0.7}
    assert spec.turn.rounds == 3


@pytest.mark.req("AF-5", "AF-6", "AF-7", "AF-8", "AF-9", "AF-10")
def test_an_artifactflow_agent_says_what_it_wants(folders: Folders) -> None:
    lists = "capabilities: [Web search, Information retrieval]\nrequired_tools: [web_search]\n"
    more = "model: openai:gpt-5.5\ntemperature: 0.5\nmax_tool_rounds: 5\nstreaming: true"
    spec = folders.agent(FLOW + lists + more)
    assert (spec.capabilities, spec.tools) == (("Web search", "Information retrieval"), ("web_search",))
    assert spec.llm_config == {"model": "openai:gpt-5.5", "streaming": True, "temperature": 0.5}
    assert spec.turn.rounds == 5


@pytest.mark.req("AF-3", "AF-4")
@pytest.mark.parametrize(("front", "key"), [("name: a", "description"), ("description: b", "name")])
def test_an_artifactflow_agent_needs_a_name_and_a_description(folders: Folders, front: str, key: str) -> None:
    said = folders.trouble(f"design: artifactflow\n{front}")
    assert said == f", line 1: `{key}` is missing, and `design: artifactflow` needs it. Add it."


@pytest.mark.req("AG-158", "AG-163")
def test_a_jarvis_agent_has_its_designs_defaults(folders: Folders) -> None:
    written(folders.ours / "helper.md", f"---\n{JARVIS}---\nYou help.")
    spec = folders.found().get("Jarvis").spec
    assert (spec.name, spec.prompt) == ("Jarvis", "You help.")
    assert spec.turn.protocols == ("tool_call", "patch", "rewrite")
    assert spec.turn.auto_complete is None


@pytest.mark.req("AG-157")
def test_a_jarvis_agent_needs_a_prompt(folders: Folders) -> None:
    assert ", line 1: `system_prompt` is missing, and `design: jarvis` needs it." in folders.trouble(JARVIS, "")
    (folders.yours / "ann.md").unlink()
    assert folders.agent(f"{JARVIS}name: ann\nsystem_prompt: You help.", "").prompt == "You help."


@pytest.mark.req("AG-159", "AG-160", "AG-166", "AG-167")
def test_jarvis_words_mean_what_ours_mean(folders: Folders) -> None:
    theirs = "summary_prompt: Short.\nuse_tools: [read_code]\nneed_summary: true\nauto_summary_rounds: 20\n"
    spec = folders.agent(f"{JARVIS}name: ann\ndescription: Helps.\nmodel_group: main\n{theirs}")
    assert (spec.description, spec.llm_config) == ("Helps.", {"model": "main"})
    assert spec.tools == ("read_code",)
    assert (spec.history.summary_prompt, spec.history.need_summary, spec.history.summary_rounds) == ("Short.", True, 20)


@pytest.mark.req("AG-163", "AG-172")
@pytest.mark.parametrize(
    ("front", "forms"),
    [
        ("disable_file_edit: true", ("tool_call",)),
        ("disable_file_edit: false", ("tool_call", "patch", "rewrite")),
        ("output_handler: [ToolRegistry, EditFileHandler]", ("tool_call", "patch")),
        ("output_handler: [ToolRegistry, EditFileHandler]\ndisable_file_edit: true", ("tool_call",)),
    ],
)
def test_jarvis_handlers_are_forms_of_text_and_edits_can_be_taken_away(
    folders: Folders, front: str, forms: tuple[str, ...]
) -> None:
    assert folders.agent(f"{JARVIS}name: ann\n{front}").turn.protocols == forms


@pytest.mark.req("AG-70", "AG-164")
@pytest.mark.parametrize(
    ("front", "tools", "groups"),
    [
        ("", DEFAULT_TOOLS, ()),
        ("use_tools: [read_code, patch]", ("read_code", "patch"), ()),
        ("groups: [read, edit]", (), ("read", "edit")),
        ("disable_file_edit: true", tuple(one for one in DEFAULT_TOOLS if one not in ("patch", "rewrite")), ()),
        ("use_tools: [read_code, patch]\ndisable_file_edit: true", ("read_code",), ()),
        ("groups: [read, edit]\ndisable_file_edit: true", (), ("read",)),
    ],
)
def test_a_jarvis_agent_has_the_usual_tools_unless_it_lists_some_and_none_that_edit_if_it_may_not(
    folders: Folders, front: str, tools: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    spec = folders.agent(f"{JARVIS}name: ann\n{front}")
    assert (spec.tools, spec.groups) == (tools, groups)


ARCHITECT = """\
design: roo
id: architect-001
type: architect
name: 🏗️ Architect
description: Designs systems.
skills: [architecture-design, documentation]
toolGroups: [read, command]
promptTemplate: |
  You are an experienced software architect.
  Key principles: high level only.
maxConcurrency: 1
averageExecutionTime: 300
successRate: 0.92
canCooperate: true
preferredPartners: [code-writer, documentation]
communicationProtocol: design-handoff
"""


@pytest.mark.req("RC-7")
def test_a_profile_of_roo_code_is_a_spec(folders: Folders) -> None:
    spec = folders.agent(ARCHITECT, "", name="architect-001")
    assert (spec.name, spec.role, spec.profile) == ("architect-001", "architect", "🏗️ Architect")
    assert spec.description == "Designs systems."
    assert spec.capabilities == ("architecture-design", "documentation")
    assert spec.groups == ("read", "command")
    assert spec.prompt == "You are an experienced software architect.\nKey principles: high level only."
    assert spec.cooperation == Cooperation(
        concurrency=1,
        seconds=300,
        success=92,
        cooperates=True,
        partners=("code-writer", "documentation"),
        protocol="design-handoff",
    )
