"""What a project says about what agents may do in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.toolset.policy import policy_for, project_rules
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard

CARD = ToolCard(spec=ToolSpec(name="execute_script", description="", parameters={}), group="command")


def put(root: Path, text: str) -> Path:
    """The project's file."""
    file = root / ".greenroom" / "permissions"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    return file


def verdict(root: Path, line: str, *agreed: str) -> str:
    """What the policy says about a command."""
    policy = policy_for(root, agreed, project_rules(root))
    return policy.decide(AgentId("a"), CARD, (Target(kind="command", value=line),)).verdict


def test_a_project_forbids_and_nobody_opens_that(tmp_path: Path) -> None:
    assert project_rules(tmp_path) == ()
    put(tmp_path, "# ours\ndeny command terraform apply\nask command ls\n")
    assert verdict(tmp_path, "terraform apply", "allow command terraform apply") == "deny"
    assert verdict(tmp_path, "ls") == "ask"


def test_what_a_project_allows_counts_for_nothing(tmp_path: Path) -> None:
    put(tmp_path, "allow command rm\nallow line rm -rf x\n")
    assert verdict(tmp_path, "rm -rf x") == "ask"


def test_a_file_that_cannot_be_read_lets_nobody_work(tmp_path: Path) -> None:
    file = put(tmp_path, "deny command x\nforbid it all\n")
    with pytest.raises(WorldFault, match="line 2"):
        project_rules(tmp_path)
    file.write_text("[/somewhere]\ndeny command x\n", encoding="utf-8")
    with pytest.raises(WorldFault, match="in brackets"):
        project_rules(tmp_path)
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(WorldFault, match="leads out"):
        project_rules(tmp_path)


@pytest.mark.parametrize("root", [Path.home(), Path("/")])
def test_where_everything_of_a_person_lies_every_change_is_asked_about(root: Path) -> None:
    policy = policy_for(root, ())
    edit = ToolCard(spec=ToolSpec(name="patch", description="", parameters={}), group="edit")
    path = Target(kind="path", value="notes.txt", writes=True)
    assert policy.decide(AgentId("a"), edit, (path,)).verdict == "ask"
    assert policy_for(root / "work", ()).decide(AgentId("a"), edit, (path,)).verdict == "allow"
