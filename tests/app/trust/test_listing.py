"""What a workspace brings: all of it, as a person sees it, bound to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.agents import find_agents
from greenroom.app.trust import MOST, Brought, Ledger, agreed, brought_by, project_scripts, troubles_in
from greenroom.core.base.errors import Refused, WorldFault

BOB = "---\ndescription: Knows\n  weather.\ntools: [forecast]\ngroups: [read]\ncalls: [ann]\nmodel: fast\n---\nDo it.\n"
CLAUDES = "---\nname: ann\ndescription: Reviews.\n---\nReview.\n"
TOOLS = "import os\nraise SystemExit\nX: int = 1\nY = 2\ndef forecast(): ...\nasync def later(): ...\nclass Say: ...\n"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(name="brings")
def a_clone(project: Path) -> Path:
    """A project that brings one of each."""
    written(project / ".greenroom" / "agents" / "bob.md", BOB)
    written(project / ".claude" / "agents" / "ann.md", CLAUDES)
    written(project / ".greenroom" / "tools" / "weather.py", TOOLS)
    written(project / ".greenroom" / "tools" / "_shared.py", "")
    written(project / ".greenroom" / "callbacks" / "audit.py", "def after_tool_call_cb(call): ...")
    return project


def digests(root: Path) -> dict[str, str]:
    return {one.name: one.digest for one in brought_by(root)}


def test_everything_that_could_act_is_listed_with_what_it_wants(brings: Path) -> None:
    server = Brought(kind="server", name="files", shown="npx files", digest="1")
    assert [(one.kind, one.name, one.shown) for one in brought_by(brings, [server])] == [
        ("agent", "ann", ".claude/agents/ann.md · Reviews. · groups: read, edit, command, web"),
        (
            "agent",
            "bob",
            ".greenroom/agents/bob.md · Knows weather. · tools: forecast · groups: read · calls: ann · model: fast",
        ),
        ("tool", "weather.py", ".greenroom/tools/weather.py · defines X, Y, forecast, later, Say"),
        ("callback", "audit.py", ".greenroom/callbacks/audit.py · defines after_tool_call_cb"),
        ("server", "files", "npx files"),
    ]


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (".greenroom/agents/bob.md", {"bob"}),
        (".claude/agents/ann.md", {"ann"}),
        (".greenroom/tools/weather.py", {"weather.py"}),
        (".greenroom/tools/_shared.py", {"weather.py"}),
        (".greenroom/tools/pkg/deep.py", {"weather.py"}),
        (".greenroom/tools/__pycache__/weather.cpython-311.pyc", {"weather.py"}),
        (".greenroom/tools/native.so", {"weather.py"}),
        (".greenroom/tools/notes.txt", set()),
        (".greenroom/callbacks/audit.py", {"audit.py"}),
        ("src/main.py", set()),
    ],
)
def test_a_byte_more_is_another_thing_and_only_that(brings: Path, file: str, changes: set[str]) -> None:
    before = digests(brings)
    path = brings / file
    written(path, (path.read_text("utf-8") if path.exists() else "") + "\n")
    after = digests(brings)
    assert {name for name in before if before[name] != after[name]} == changes


def test_where_a_file_stands_is_agreed_to_as_well(project: Path) -> None:
    first = written(project / ".greenroom" / "agents" / "ann.md", CLAUDES)
    before = digests(project)
    written(project / ".claude" / "agents" / "ann.md", CLAUDES)
    first.unlink()
    assert before["ann"] != digests(project)["ann"]


def test_names_and_bytes_cannot_change_places(project: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "a.py", "x=1\n")
    written(tools / "b.py", "x=2\n")
    before = digests(project)
    written(tools / "a.py", "x=2\n")
    written(tools / "b.py", "x=1\n")
    after = digests(project)
    assert before["a.py"] != after["a.py"]
    assert before["b.py"] != after["b.py"]
    assert before["a.py"] != before["b.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "defines nothing"), ("def (", "is no Python that can be read"), ("a\0b", "is no Python that can be read")],
)
def test_a_file_that_is_no_python_is_listed_too(project: Path, text: str, told: str) -> None:
    written(project / ".greenroom" / "tools" / "x.py", text)
    (one,) = brought_by(project)
    assert one.shown == f".greenroom/tools/x.py · {told}"


def test_of_many_names_some_are_told(project: Path) -> None:
    written(project / ".greenroom" / "tools" / "x.py", "\n".join(f"a{number} = 1" for number in range(40)))
    (one,) = brought_by(project)
    assert one.shown.endswith("a11 and 28 more")


def test_no_link_leads_out_and_none_leads_to_a_folder(project: Path, tmp_path: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "x.py", "")
    written(project / "scripts" / "deploy.py", "def deploy(): ...")
    (tools / "deploy.py").symlink_to(project / "scripts" / "deploy.py")
    assert set(digests(project)) == {"x.py", "deploy.py"}, "a link inside of the workspace is a file like others"
    outside = written(tmp_path / "outside" / "evil.py", "")
    (tools / "evil.py").symlink_to(outside)
    assert digests(project) == {}
    assert "evil.py: is a link that leads out of the workspace" in troubles_in(project)[0]
    (tools / "evil.py").unlink()
    (tools / "pkg").symlink_to(project / "scripts")
    assert "pkg: is a link to a folder" in troubles_in(project)[0]
    (tools / "pkg").unlink()
    (tools / "odd.py").mkdir()
    assert set(digests(project)) == {"x.py", "deploy.py"}


def test_a_folder_that_is_a_link_out_of_the_workspace_is_not_read(project: Path, tmp_path: Path) -> None:
    written(tmp_path / "outside" / "evil.py", "")
    (project / ".greenroom").mkdir()
    (project / ".greenroom" / "tools").symlink_to(tmp_path / "outside")
    assert project_scripts(project, "tool").found == ()
    assert "leads out of the workspace" in troubles_in(project)[0]


def test_a_folder_with_too_many_files_or_too_long_a_file_is_not_used(project: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "long.py", "#" * 1_000_001)
    assert "is longer than 1 MB" in troubles_in(project)[0]
    for number in range(MOST):
        written(tools / f"_{number}.py", "")
    assert f"holds more than {MOST} files" in troubles_in(project)[0]


def test_a_place_for_everybody_brings_nothing(brings: Path) -> None:
    brings.chmod(0o1777)
    assert brought_by(brings) == ()


def test_an_agent_that_nobody_agreed_to_is_not_there_and_says_why(brings: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "trust.json")
    found = find_agents(brings)
    none = agreed(found, brings, ledger.trusted(brings))
    assert none.specs == {}
    with pytest.raises(
        WorldFault, match=r"'bob' is from .*bob\.md, and nobody has agreed to it yet: `greenroom trust`"
    ):
        none.get("bob")
    with pytest.raises(Refused, match="There is no agent 'eve'"):
        none.get("eve")
    ledger.agree(brings, brought_by(brings))
    assert agreed(found, brings, ledger.trusted(brings)) is found


def test_a_persons_own_agent_needs_no_yes_and_takes_nobodys_place(brings: Path, config: Path, tmp_path: Path) -> None:
    written(config / "agents" / "mine.md", "---\ndescription: Mine.\n---\nx")
    written(config / "agents" / "bob.md", "---\ndescription: My own bob.\n---\nx")
    usable = agreed(find_agents(brings), brings, Ledger(tmp_path / "trust.json").trusted(brings))
    assert usable.names == ("mine",), "a project's bob stands before mine, so mine does not answer in its place"


def test_an_agents_file_that_cannot_be_read_is_named_if_it_is_the_projects(brings: Path, config: Path) -> None:
    written(brings / ".greenroom" / "agents" / "bad.md", "---\ntools: {\n---\n")
    written(brings / ".claude" / "agents" / "bob.md", CLAUDES)
    written(config / "agents" / "worse.md", "---\ntools: {\n---\n")
    told = " ".join(troubles_in(brings))
    assert "bad.md" in told
    assert "'ann', and so does" in told, "two that are one agent are none"
    assert "worse.md" not in told
