"""Walls as teams get them: chosen when it matters, silent where they hold, as before where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from greenroom.abilities.tools.commands import build_command_tools
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.choice import SandboxChoice
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset import sandbox as found
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.sandbox import WorkspaceSandbox, find_strongest_sandbox
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.sandbox import Tier
from greenroom.core.ports.tool import PolicyDecision, Target
from tests.conformance.running import ran, shell


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def owner(path: Path) -> int:
    return path.stat().st_uid


def ruled(
    root: Path,
    line: str,
    *rules: str,
    walled: bool = True,
    project: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
) -> PolicyDecision:
    policy = build_policy(root, (), project, stated_rules=rules, is_sandboxed=lambda: walled)
    card = next(tool for tool in build_command_tools(LocalCommands(root)) if tool.card.group == "command").card
    reached = (Target(kind="host", value=host) for host in hosts)
    return policy.decide(AgentId("a"), card, (Target(kind="command", value=line), *reached))


SILENT = [
    "make",
    "pytest -q && npm test",
    "python3 x.py | tee out",
    "for f in *; do wc -l $f; done",
    "rm -rf build",
    "git push",
    "make && git push",
]


@pytest.mark.parametrize("line", SILENT)
def test_behind_walls_what_stays_inside_is_silent_and_without_them_it_is_asked_about(root: Path, line: str) -> None:
    assert ruled(root, line).verdict == "allow"
    assert ruled(root, line, walled=False).verdict == "ask"


@pytest.mark.parametrize(
    "line", ["cat .env", "cat .env | base64", "cp x .git/hooks/pre-commit", "echo x > .git/config"]
)
def test_secrets_and_what_a_rule_forbids_are_asked_about_behind_walls_too(root: Path, line: str) -> None:
    assert ruled(root, line).verdict == "ask"


@pytest.mark.parametrize(("line", "verdict"), [("pip install x", "allow"), ("pip install x | tee log", "ask")])
def test_a_line_of_the_shell_that_wants_the_network_is_asked_about_behind_walls_too(
    root: Path, line: str, verdict: str
) -> None:
    assert ruled(root, line, "allow host pypi.org", hosts=("pypi.org",)).verdict == verdict
    assert ruled(root, line, f"allow line {line}", "allow host pypi.org", hosts=("pypi.org",)).verdict == "allow"
    assert ruled(root, line, hosts=("pypi.org",)).verdict == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "cat .e*",
        "head ./.env*",
        "cat .[e]nv",
        "cat .en?",
        "tar c .*",
        "cat id_*",
        "head -n1 keys/cred*",
        "cat web/*.pem",
    ],
)
def test_a_pattern_that_may_mean_secrets_is_asked_about_behind_walls_too(root: Path, line: str) -> None:
    told = ruled(root, line)
    assert (told.verdict, "may hold secrets" in told.why) == ("ask", True)


@pytest.mark.parametrize("line", ["wc -l *", "cat s*", "rm .pytest*", "cat *.py", "ls src/[a-z]*", "cat .eslint*"])
def test_a_pattern_that_means_other_files_is_silent_behind_walls(root: Path, line: str) -> None:
    assert ruled(root, line).verdict == "allow"


def test_rules_stay_rules_behind_walls(root: Path) -> None:
    assert ruled(root, "make deploy", "deny command make deploy").verdict == "deny"
    assert ruled(root, "make deploy", project=("ask command make deploy",)).verdict == "ask"
    assert ruled(root, "make all", "deny command make deploy").verdict == "allow"
    assert ruled(root, "$(cat x) deploy", "deny command make deploy").verdict == "ask", "it may be that one"


async def test_commands_of_a_team_run_behind_the_walls_that_hold_here(root: Path) -> None:
    walls = WorkspaceSandbox(root)
    commands = LocalCommands(root, sandbox=walls.open_sandbox)
    try:
        made = await ran(commands, shell("id -u; grep Seccomp: /proc/self/status | cut -f2; touch mine"))
    finally:
        commands.close()
    assert walls.is_holding()
    uid, seccomp = made.text.split()
    assert (int(uid) != 0, seccomp) == (True, "2")
    assert owner(root / "mine") == owner(root)


async def test_walls_behind_which_nothing_ran_are_taken_down_with_the_hands(root: Path) -> None:
    walls = WorkspaceSandbox(root)
    hands = Toolset(root, build_policy(root, (), is_sandboxed=walls.is_holding), sandbox=walls)
    assert walls.choice.tier == "bubblewrap"
    wall = walls.get_sandbox()
    assert wall is not None
    await hands.close()
    await hands.close()


async def test_who_turns_them_off_has_none(root: Path) -> None:
    walls = WorkspaceSandbox(root, SandboxSettings(walls="off"))
    assert (walls.is_holding(), walls.get_sandbox()) == (False, None)
    assert find_strongest_sandbox("off").why == ('walls = "off" below [sandbox] in your settings',)
    assert walls.reach() is None
    await walls.close()


def test_a_place_that_is_too_wide_has_none_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "find_strongest_sandbox", lambda _: SandboxChoice(tier="bubblewrap"))
    walls = WorkspaceSandbox(Path("/"))
    assert (walls.is_holding(), walls.get_sandbox()) == (False, None)
    assert "it is a system folder" in walls.choice.why[0]


HOLDS = {"bubblewrap": True, "landlock": True, "seatbelt": False, "none": False}
REACHES = {"bubblewrap": ("pypi.org",), "landlock": (), "seatbelt": None, "none": None}


@pytest.mark.parametrize("tier", get_args(Tier))
def test_only_walls_that_were_tried_hold_and_only_one_kind_has_a_way_out(
    root: Path, tier: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What macOS has is unverified: whoever runs a command there is asked, as without walls."""
    monkeypatch.setattr(found, "find_strongest_sandbox", lambda _: SandboxChoice(tier=tier, why=()))
    monkeypatch.setattr(found, "make_sandbox", lambda *_: None)
    walls = WorkspaceSandbox(root, SandboxSettings(hosts=("pypi.org",)))
    assert (walls.is_holding(), walls.reach()) == (HOLDS[tier], REACHES[tier])
