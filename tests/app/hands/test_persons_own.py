"""What a person keeps for themselves: no tool of an agent changes it, also where it lies in the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.toolset.policy import policy_for
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard

PATCH = ToolCard(spec=ToolSpec(name="patch", description=""), group="edit", effect="keyed")


def verdict(root: Path, path: str, *, writes: bool = True, agreed: tuple[str, ...] = ()) -> str:
    policy = policy_for(root, agreed)
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
    assert verdict(home, f"my config/greenroom/{file}", agreed=wide) == "deny"
    assert verdict(home / "project", f"{home}/my config/greenroom/{file}", agreed=wide) == "deny"
    assert verdict(home, "my config/other/trust.json", agreed=wide) == "allow"


def test_keys_are_not_read_and_the_rest_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert verdict(tmp_path, "config/greenroom/keys.toml", writes=False) == "deny"
    assert verdict(tmp_path, "config/greenroom/agents/a.md", writes=False) == "allow"


def test_what_governs_a_project_is_not_written_either(tmp_path: Path) -> None:
    for file in (".greenroom/agents/a.md", ".greenroom/tools/a.py", ".greenroom/config.toml", "sub/.greenroom/x"):
        assert verdict(tmp_path, file, agreed=("allow path ** write",)) == "deny"
