"""The policy of a workspace: rules of the person and of the project, what nobody may change, and confirming."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from greenroom.app.toolset.policy import (
    FILE_HEADER,
    ConfirmingPolicy,
    RulesFile,
    build_policy,
    open_user_rules,
    project_rules,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import PolicyDecision, Target, ToolCard
from tests.app.toolset.test_pipeline import Says

WRITTEN = """# Mine.
allow   command ls   # no, this is part of it

# Work.
[/work]
# Never!
deny path secret/**

[/play]
allow command npm test
"""
ADDING = """
import sys
from pathlib import Path
from greenroom.app.toolset.policy import RulesFile
for number in range(10):
    assert RulesFile(Path(sys.argv[1])).add(f"allow command {sys.argv[2]} {number}", Path("/work"))
"""


@pytest.fixture(name="file")
def a_file(tmp_path: Path) -> RulesFile:
    """What a person has written with an editor."""
    path = tmp_path / "permissions"
    path.write_text(WRITTEN.replace("   # no, this is part of it", ""))
    return RulesFile(path, own=True)


def test_what_a_person_wrote_stays_where_it_is(file: RulesFile) -> None:
    before = file.path.read_text()
    assert file.add("allow command make", Path("/work"))
    assert file.add("allow command cat", None)
    assert file.add("allow command ps", Path("/new"))
    assert file.path.read_text() == (
        before.replace("secret/**\n", "secret/**\nallow command make\n").replace(
            "command ls\n", "command ls\nallow command cat\n"
        )
        + "\n[/new]\nallow command ps\n"
    )
    for rule, place in (("make", Path("/work")), ("cat", None), ("ps", Path("/new"))):
        assert file.remove(f"allow command {rule}", place)
    assert file.path.read_text().rstrip("\n") == before.rstrip("\n")
    assert file.remove("deny path secret/**", Path("/work"))
    assert "[/work]\n# Never!\n" in file.path.read_text()


def test_a_first_rule_for_everywhere_stands_before_the_workspaces(tmp_path: Path) -> None:
    file = RulesFile(tmp_path / "permissions")
    assert file.add("allow command ls", Path("/work"))
    assert file.add("allow command cat", None)
    assert file.path.read_text() == f"{FILE_HEADER}\nallow command cat\n\n[/work]\nallow command ls\n"
    file.path.write_text("[/work]\nallow command ls\n")
    assert file.add("allow command cat", None)
    assert file.path.read_text() == "allow command cat\n\n[/work]\nallow command ls\n"


def test_several_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config" / "permissions"
    names = ("a", "b", "c", "d")
    adding = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(path), name], stderr=subprocess.PIPE) for name in names
    ]
    assert [(one.communicate(timeout=60)[1], one.returncode) for one in adding] == [(b"", 0)] * len(names)
    assert len(RulesFile(path).rules_for(Path("/work"))) == 10 * len(names)


def test_a_file_that_others_may_write_is_not_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = open_user_rules()
    file.add("allow command ls", None)
    file.path.chmod(0o664)
    with pytest.raises(WorldFault, match=r"says what agents may do, and other users can write it.*chmod 600"):
        file.rules_for(tmp_path)
    with pytest.raises(WorldFault, match="other users can write it"):
        file.add("allow command cat", None)
    assert "cat" not in file.path.read_text()


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match=r"cannot be written: .*Nothing was changed"):
        RulesFile(tmp_path / "file" / "permissions").add("allow command ls", None)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real, link = tmp_path / "dotfiles" / "permissions", tmp_path / "permissions"
    real.write_text("")
    link.symlink_to(real)
    assert RulesFile(link).add("allow command ls", None)
    assert link.is_symlink()
    assert "allow command ls" in real.read_text()


CARD = ToolCard(spec=ToolSpec(name="execute_script", description="", parameters={}), group="command")


def put(root: Path, text: str) -> Path:
    """The project's file."""
    file = root / ".greenroom" / "permissions"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    return file


def verdict(root: Path, line: str, *agreed: str) -> str:
    """What the policy says about a command."""
    policy = build_policy(root, agreed, project_rules(root))
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
    policy = build_policy(root, ())
    edit = ToolCard(spec=ToolSpec(name="patch", description="", parameters={}), group="edit")
    path = Target(kind="path", value="notes.txt", writes=True)
    assert policy.decide(AgentId("a"), edit, (path,)).verdict == "ask"
    assert build_policy(root / "work", ()).decide(AgentId("a"), edit, (path,)).verdict == "allow"


PATCH = ToolCard(spec=ToolSpec(name="patch", description=""), group="edit", effect="keyed")


def own_verdict(root: Path, path: str, *, writes: bool = True, agreed: tuple[str, ...] = ()) -> str:
    policy = build_policy(root, agreed)
    return policy.decide(AgentId("ann"), PATCH, (Target(kind="path", value=path, writes=writes),)).verdict


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(
    "file",
    [
        "trust.json",
        "permissions",
        "config.toml",
        "keys.toml",
        "tools/a.py",
        "callbacks/a.py",
        "agents/a.md",
        "Trust.JSON",
    ],
)
def test_nothing_of_it_is_written_whatever_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, *, linked: bool
) -> None:
    home = tmp_path / "real"
    (home / "my config" / "greenroom").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("XDG_CONFIG_HOME", str((tmp_path / "link" if linked else home) / "my config"))
    wide = ("allow path ** write", f"allow path {tmp_path}/** write")
    assert own_verdict(home, f"my config/greenroom/{file}", agreed=wide) == "deny"
    assert own_verdict(home / "project", f"{home}/my config/greenroom/{file}", agreed=wide) == "deny"
    assert own_verdict(home, "my config/other/trust.json", agreed=wide) == "allow"


def test_keys_are_not_read_and_the_rest_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert own_verdict(tmp_path, "config/greenroom/keys.toml", writes=False) == "deny"
    assert own_verdict(tmp_path, "config/greenroom/agents/a.md", writes=False) == "allow"


def test_what_governs_a_project_is_not_written_either(tmp_path: Path) -> None:
    for file in (".greenroom/agents/a.md", ".greenroom/tools/a.py", ".greenroom/config.toml", "sub/.greenroom/x"):
        assert own_verdict(tmp_path, file, agreed=("allow path ** write",)) == "deny"


READING = ToolCard(spec=ToolSpec(name="read_code", description="Reads."), group="read")
ANN, BOB = AgentId("ann"), AgentId("bob")


@pytest.mark.req("AG-135")
@pytest.mark.parametrize(
    ("verdict", "becomes"), [("allow", "ask"), ("notify", "ask"), ("ask", "ask"), ("deny", "deny")]
)
def test_what_is_not_forbidden_is_asked_and_cannot_be_agreed_to_for_good(
    verdict: Literal["allow", "notify", "ask", "deny"], becomes: str
) -> None:
    own = PolicyDecision(verdict=verdict, why="So.", grant="allow tool read_code")
    ruling = ConfirmingPolicy(Says(own)).decide(ANN, READING, (), ())
    assert (ruling.verdict, ruling.grant) == (becomes, own.grant if verdict == "deny" else "")
    assert ruling.why == ("So." if verdict in ("ask", "deny") else "Every call is confirmed.")


def test_a_question_names_what_is_touched_and_only_some_are_asked_about() -> None:
    policy = ConfirmingPolicy(Says(PolicyDecision(verdict="allow")), lambda agent: agent == ANN)
    touched = (Target(kind="path", value="a\x1b[2J.py"), Target(kind="tool", value="read_code"))
    assert policy.decide(ANN, READING, touched).why == r"It is about `a\x1b[2J.py`. Every call is confirmed."
    assert policy.decide(BOB, READING, touched).verdict == "allow"
