"""A new agent's file: it works as it stands, and nothing is ever overwritten."""

from __future__ import annotations

import pytest

from greenroom.app.agents.discovery import NewAgent, collect_notes, render_agent_file, write_agent
from greenroom.core.base.errors import RefusedError, WorldFault
from tests.app.agents.folders import Folders, written


def test_a_new_agent_works_as_it_stands(folders: Folders) -> None:
    wish = NewAgent(name="ann", description='Says: "yes" # always', model="openai:gpt-5.5", tools=("read_file", "no"))
    path = write_agent(folders.project, wish)
    assert path == folders.ours / "ann.md"
    spec = folders.found().get("ann").spec
    assert (spec.name, spec.description, spec.tools) == ("ann", 'Says: "yes" # always', ("read_file", "no"))
    assert spec.llm_config == {"model": "openai:gpt-5.5"}
    assert "Write the agent's instructions here" in spec.prompt
    assert [one.name for one in folders.ours.iterdir()] == ["ann.md"]


def test_everything_in_its_comments_can_be_used(folders: Folders) -> None:
    lines = render_agent_file(NewAgent(name="ann")).splitlines()
    offered = [line.removeprefix("# ") if line.startswith("# ") and ": " in line else line for line in lines]
    sentences = [line for line in offered if not line.startswith("# An agent") and "`greenroom" not in line]
    written(folders.ours / "ann.md", "\n".join(sentences))
    spec = folders.found().get("ann").spec
    assert (spec.role, spec.calls, spec.turn.rounds, spec.turn.ends) == (
        "a careful reviewer",
        ("ann",),
        20,
        "finish",
    )
    assert spec.llm_config == {"effort": "high", "max_output": 8000, "model": "strong", "temperature": 0.2}


def test_nothing_is_overwritten(folders: Folders) -> None:
    old = written(folders.ours / "ann.md", "something else")
    with pytest.raises(RefusedError, match=r"The agent 'ann' already exists, in .*ann\.md\. Edit that file, or choose"):
        write_agent(folders.project, NewAgent(name="ann"))
    assert old.read_text() == "something else"
    (folders.ours / "bob.md").symlink_to("nowhere")
    with pytest.raises(RefusedError, match="The agent 'bob' already exists"):
        write_agent(folders.project, NewAgent(name="bob"))


def test_a_name_that_another_file_has_is_taken(folders: Folders) -> None:
    written(folders.ours / "other.md", "---\nname: ann\n---\n")
    with pytest.raises(RefusedError, match=r"The agent 'ann' already exists, in .*other\.md"):
        write_agent(folders.project, NewAgent(name="ann"))
    assert write_agent(folders.project, NewAgent(name="ann", user=True)).exists(), "that is another folder"


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (NewAgent(name="../up"), "'../up' cannot be an agent's name. It must be a name of up to 64"),
        (NewAgent(name=".hidden"), "'.hidden' cannot be an agent's name."),
        (NewAgent(name="door"), "'door' cannot be an agent's name. It must be another name"),
        (NewAgent(name="a" * 65), "cannot be an agent's name."),
        (NewAgent(name="ann", model="https://x"), "'https://x' cannot be an agent's model. It must be a role"),
        (NewAgent(name="ann", tools=("a", " ")), "cannot be an agent's tools."),
        (NewAgent(name="ann", description="a\x1bb"), "cannot be an agent's description."),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(folders: Folders, wish: NewAgent, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        write_agent(folders.project, wish)
    assert said in str(refused.value)
    assert not (folders.project / ".greenroom").exists()


def test_a_folder_that_leads_elsewhere_or_cannot_be_written_is_said(folders: Folders) -> None:
    (folders.home / "elsewhere").mkdir()
    (folders.project / ".greenroom").symlink_to(folders.home / "elsewhere")
    with pytest.raises(WorldFault, match=r"is not a folder of this project. Go to a project, or use --user"):
        write_agent(folders.project, NewAgent(name="ann"))
    assert list((folders.home / "elsewhere").iterdir()) == []
    written(folders.yours.parent, "a file")
    with pytest.raises(WorldFault, match=r"cannot be written: .* Make the folder writable"):
        write_agent(folders.project, NewAgent(name="ann", user=True))


def told(folders: Folders, *tools: str) -> list[str]:
    found = folders.found()
    return [str(one) for one in collect_notes(found.get("ann"), found, tools)]


def test_what_an_agent_names_that_is_not_here_is_said(folders: Folders) -> None:
    folders.agent("tools: [read_file, fly]\ncalls: [bob, ann]\ngroups: [read]\ncapabilities: [x]\nmaxConcurrency: 2")
    assert told(folders) == [
        "`tools` names `read_file`, `fly`, which this Greenroom does not have: requests leave them out.",
        "`calls` names `bob`, which do not exist. Create one with `greenroom agents new NAME`.",
    ]
    assert "`tools` names `fly`, which" in told(folders, "read_file")[0]


def test_of_an_agent_that_lacks_nothing_nothing_is_said(folders: Folders) -> None:
    folders.agent("tools: [read_file]\ncalls: [ann]\ngroups: [read]")
    assert told(folders, "read_file") == []
