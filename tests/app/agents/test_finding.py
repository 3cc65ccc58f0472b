"""Where agents are found, which of two of a name counts, and files that cannot be used: one sentence each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.app.agents.discovery import MAX_AGENT_FILES, find_agents, list_agent_folders
from greenroom.app.agents.front_matter import MAX_FILE_BYTES
from greenroom.core.base.errors import RefusedError, WorldFault
from tests.app.agents.folders import Folders, written

GOOD = "---\ndescription: Good.\n---\nDo it.\n"


def agent(folder: Path, name: str, description: str = "x") -> Path:
    return written(folder / f"{name}.md", f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")


def test_the_nearer_of_two_with_one_name_counts(folders: Folders) -> None:
    every = (folders.ours, folders.yours, folders.claudes, folders.your_claudes)
    for place, folder in enumerate(every):
        for name in ("a", "b", "c", "d")[place:]:
            agent(folder, name, f"from {place}")
    found = folders.found()
    assert [(name, spec.description) for name, spec in found.specs.items()] == [
        ("a", "from 0"),
        ("b", "from 0"),
        ("c", "from 0"),
        ("d", "from 0"),
    ]
    for file in folders.ours.iterdir():
        file.unlink()
    found = folders.found()
    assert found.names == ("b", "c", "d")
    assert {str(one.folder) for one in found.by_name.values()} == {"user"}
    assert {str(one.folder) for one in found.hidden} == {"project, Claude Code", "user, Claude Code"}


def test_what_lies_about_in_a_place_for_everybody_is_nobodys_agent(tmp_path: Path, folders: Folders) -> None:
    shared = tmp_path / "shared"
    agent(shared / ".greenroom" / "agents", "ann")
    (shared / "here").mkdir()
    shared.chmod(0o1777)
    assert find_agents(shared).names == ()
    assert find_agents(shared / "here").names == ()
    agent(shared / "here" / ".greenroom" / "agents", "bob")
    assert find_agents(shared / "here").names == ("bob",)


def test_claude_codes_own_folder_may_be_elsewhere(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    agent(folders.your_claudes, "ann")
    agent(folders.home / "other" / "agents", "bob")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folders.home / "other"))
    assert folders.found().names == ("bob",)


def test_at_home_claude_codes_folder_is_the_persons_own(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    agent(folders.your_claudes, "ann")
    assert str(find_agents(folders.home).get("ann").folder) == "user, Claude Code"
    monkeypatch.delenv("HOME")
    assert len(list_agent_folders(folders.project)) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Do it.", " has no front matter. Begin it with a line ---"),
        (b"", " has no front matter."),
        (b"---\nname: x\n", ", line 1: its front matter never ends. Write a line --- below its last key."),
        (b"---\nname: [x\n---\n", "its front matter cannot be read: "),
        (b"---\n- a\n---\n", ", line 2: its front matter cannot be read: there are no keys in it. Write them like"),
        (b"---\nname: \xff\n---\n", " is not UTF-8: byte 10 cannot be read. Save it as UTF-8."),
        (
            b"---\nrole: x\n---\nDo\n\x1b[2Jit",
            ", line 5: the character U+001B is invisible and not allowed.",
        ),
        ("---\nrole: x\n---\n\u202edo".encode(), ", line 4: the character U+202E is invisible"),
        ("---\nrole: x\n---\ndo\U000e0041".encode(), ", line 4: the character U+E0041 is invisible"),
        (b"---\nrole: x\n---\n" + b"x" * MAX_FILE_BYTES, " is longer than 256 KB. Shorten it"),
    ],
)
def test_one_broken_file_is_told_in_a_sentence_and_hides_no_other(folders: Folders, content: bytes, said: str) -> None:
    written(folders.ours / "good.md", GOOD)
    path = folders.ours / "bad.md"
    path.write_bytes(content)
    found = folders.found()
    assert found.names == ("good",)
    (trouble,) = found.broken_files
    assert trouble.text.startswith(str(path))
    assert said in trouble.text
    assert len(trouble.text) < len(str(path)) + 300
    with pytest.raises(WorldFault) as fault:
        find_agents(folders.project).get("bad")
    assert str(fault.value) == trouble.text


def test_two_files_of_one_folder_with_one_name_are_both_left_out(folders: Folders) -> None:
    for file in ("a", "b"):
        written(folders.ours / f"{file}.md", "---\nname: ann\n---\nDo it.")
    agent(folders.yours, "ann")
    found = folders.found()
    assert found.names == ()
    assert [one.text for one in found.broken_files] == [
        f"{folders.ours / 'a.md'} has the name 'ann', and so does b.md. Neither is used: rename one.",
        f"{folders.ours / 'b.md'} has the name 'ann', and so does a.md. Neither is used: rename one.",
    ]
    with pytest.raises(WorldFault, match="Neither is used"):
        found.get("ann")


def test_a_broken_agent_is_not_replaced_by_another_of_its_name_without_a_word(folders: Folders) -> None:
    written(folders.ours / "file.md", "---\nname: ann\nzzz: 1\n---\n")
    agent(folders.yours, "ann")
    with pytest.raises(WorldFault, match="`zzz` is not a key"):
        find_agents(folders.project).get("ann")


def test_a_name_that_is_not_there_brings_the_nearest(folders: Folders) -> None:
    for place in (folders.ours, folders.yours):
        agent(place, "reviewer" if place == folders.ours else "searcher")
    with pytest.raises(RefusedError, match=r"There is no agent 'reveiwer'. Did you mean `reviewer`\?"):
        find_agents(folders.project).get("reveiwer")
    with pytest.raises(RefusedError, match=r"There are: `reviewer`, `searcher`. Create one with `greenroom agents new"):
        find_agents(folders.project).get("zzz")
    written(folders.ours / "bad.md", "")
    with pytest.raises(RefusedError, match=r"`greenroom agents list` shows which files cannot be read."):
        find_agents(folders.project).get("zzz")


def test_a_file_name_that_is_no_name_needs_one_inside(folders: Folders) -> None:
    written(folders.ours / "my agent.md", GOOD)
    (trouble,) = folders.found().broken_files
    assert "`name` is missing, and 'my agent' cannot be one. It must be a name of" in trouble.text


def test_a_projects_file_raises_no_limit_of_the_house(folders: Folders) -> None:
    assert ", line 2: `max_tool_rounds` is more than Greenroom's limit of 200, which a project can" in (
        folders.trouble("max_tool_rounds: 201", folder=folders.ours)
    )
    (folders.ours / "ann.md").unlink()
    assert folders.agent("rounds: 201").turn.rounds == 201


@pytest.mark.parametrize("key", ["api_key", "base_url", "headers", "limits", "max_cost"])
def test_no_file_names_keys_addresses_or_limits_of_a_run(folders: Folders, key: str) -> None:
    for folder in (folders.ours, folders.yours):
        assert f", line 2: `{key}` is a" in folders.trouble(f"{key}: sk-1", folder=folder)
        (folder / "ann.md").unlink()


def test_a_projects_links_lead_nowhere_else(folders: Folders) -> None:
    outside = written(folders.home / "outside.md", GOOD)
    agent(folders.ours, "ann")
    (folders.ours / "out.md").symlink_to(outside)
    (folders.ours / "in.md").symlink_to("ann.md")
    (folders.ours / "gone.md").symlink_to("nowhere.md")
    texts = [one.text for one in folders.found().broken_files]
    assert f"{folders.ours / 'out.md'} is a link that leads outside. Put the file itself there." in texts
    assert f"{folders.ours / 'gone.md'} is not a plain file. Move it away." in texts
    assert len(texts) == 4, "a link beside its file is the same agent twice"


def test_a_projects_folder_is_no_link_out_of_it(folders: Folders) -> None:
    agent(folders.home / "elsewhere", "ann")
    folders.ours.parent.mkdir()
    folders.ours.symlink_to(folders.home / "elsewhere")
    found = folders.found()
    assert found.names == ()
    assert [one.text for one in found.broken_files] == [
        f"{folders.ours} is a link that leads out of the project, and is not read. Make it a folder."
    ]


def test_what_is_no_file_or_no_folder_is_said(folders: Folders) -> None:
    (folders.ours / "folder.md").mkdir(parents=True)
    os.mkfifo(folders.ours / "pipe.md")
    written(folders.yours, "a file where a folder should be")
    texts = [one.text for one in folders.found().broken_files]
    assert texts[0].endswith("folder.md is not a plain file. Move it away.")
    assert texts[1].endswith("pipe.md is not a plain file. Move it away.")
    assert texts[2].startswith(f"{folders.yours} is not a readable folder of agents: Not a directory.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_said(folders: Folders) -> None:
    agent(folders.ours, "ann").chmod(0)
    (trouble,) = folders.found().broken_files
    assert "cannot be read: Permission denied. Make it readable, or move it away." in trouble.text


def test_a_folder_with_too_many_files_is_read_in_part(folders: Folders) -> None:
    folders.ours.mkdir(parents=True)
    for number in range(MAX_AGENT_FILES + 5):
        (folders.ours / f"a{number}.md").write_text(GOOD)
    found = folders.found()
    assert len(found.names) == MAX_AGENT_FILES
    assert (
        f"{folders.ours} holds more than {MAX_AGENT_FILES} agents; only the first {MAX_AGENT_FILES} are read."
        in found.broken_files[0].text
    )


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), front=st.booleans(), claude=st.booleans())
def test_no_content_of_a_file_breaks_anything(folders: Folders, content: bytes, front: bool, claude: bool) -> None:
    folder = folders.claudes if claude else folders.ours
    written(folder / "good.md", GOOD)
    (folder / "bad.md").write_bytes(b"---\n" + content + b"\n---\n" if front else content)
    found = folders.found()
    assert "good" in found.names or any("good" in one.name for one in found.broken_files)
    assert len(found.names) + len(found.broken_files) >= 2


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.dictionaries(
        st.sampled_from(["name", "tools", "model", "answer", "cooperation", "skills", "maxTurns", "effort", "color"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii"), max_size=9),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
        max_size=4,
    )
)
def test_no_value_of_a_key_breaks_anything(folders: Folders, raw: dict[str, object]) -> None:
    front = "\n".join(f"{key}: {value!r}" for key, value in raw.items())
    for folder in (folders.ours, folders.claudes):
        written(folder / "ann.md", f"---\n{front}\n---\nDo it.")
    folders.found()
