"""Files that configure agents or tools: free in a worktree and asked about by `apply`, asked about in place."""

from pathlib import Path

import pytest

from tests.e2e.jobs import PERSON, Workshop, call, done
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import environment, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai.scripts import Reply

ALONE = ("Paint it.", "--non-interactive", "--allow-unverified")
WRITES = (".github/workflows/ci.yml", "api/CLAUDE.md", ".mcp.json")
ENTER = "\r"
AGENT = "---\ndescription: Works.\ngroups: [read, edit]\n---\nDo what you are asked.\n"


def writing(*names: str) -> list[Reply]:
    return [
        *(call("rewrite", number, file=name, content="{}\n") for number, name in enumerate(names)),
        done("It is red."),
    ]


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    shop = Workshop(tmp_path)
    assert shop.runs(writing(*WRITES, "plain.txt"), *ALONE).code in (0, 7)
    return shop


def test_apply_lists_them_first_and_wants_a_yes(shop: Workshop) -> None:
    refused = shop.types("apply", "last", "--output-format", "json")
    assert (refused.code, refused.json["code"]) == (2, "configures_agents"), refused.out
    assert "--yes" in str(refused.json)
    assert not (shop.repo / "plain.txt").exists()
    applied = shop.types("apply", "last", "--yes", "--output-format", "json")
    assert (applied.code, applied.json["governing"]) == (0, sorted(WRITES)), applied.out
    assert shop.reads(".mcp.json") == "{}\n"


def test_at_a_terminal_a_person_is_asked(shop: Workshop) -> None:
    around = environment(shop.home, GREENROOM_SANDBOX="auto", **PERSON)
    for answer, code in (("n", 2), ("y", 0)):
        with Typing(shop.home, "apply", "last", cwd=str(shop.repo), **around) as typed:
            typed.until("Apply them too?")
            assert ".github/workflows/ci.yml, .mcp.json, api/CLAUDE.md" in typed.seen.replace("\n", " ")
            typed.press(f"{answer}{ENTER}")
            assert typed.ends() == code


def test_other_changes_are_applied_without_a_question(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    assert shop.runs(writing(".github/CODEOWNERS", ".vscode/settings.json"), *ALONE).code in (0, 7)
    applied = shop.types("apply", "last", "--output-format", "json")
    assert (applied.code, applied.json["governing"]) == (0, [])


@pytest.mark.parametrize("name", [*WRITES, "AGENTS.md", ".envrc", ".husky/pre-commit", ".claude/settings.json"])
def test_in_place_a_person_is_asked_about_each(tmp_path: Path, name: str) -> None:
    shop = Workshop(tmp_path, **{".greenroom/agents/coder.md": AGENT})
    shop.trusts()
    with provider(writing(name)) as fake:
        words = ("run", "x", "--agent", "coder", "--in-place")
        parked = greenroom(shop.home, *words, cwd=str(shop.repo), **reached(fake))
    assert parked.code == 6, parked.err
    assert name in greenroom(shop.home, "approvals", "list").out
    assert not (shop.repo / name).exists()


def test_a_command_of_a_run_cannot_write_them_and_hears_of_it(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{"AGENTS.md": "mine\n"})
    line = "echo x >>AGENTS.md; mkdir api; echo x >api/CLAUDE.md; echo x >plain.txt"
    with provider([call("execute_script", 1, interpreter="bash", script=line), done("It is red.")]) as fake:
        shop.types("run", *ALONE, **reached(fake))
        heard = str(fake.requests[-1].body["messages"])
    assert "Put back: 'api/CLAUDE.md'" in heard, heard
    changed = shop.types("diff", "last").out
    assert ("plain.txt" in changed, "AGENTS.md" in changed, "CLAUDE.md" in changed) == (True, False, False)


def test_a_branch_names_them_and_needs_no_yes(shop: Workshop) -> None:
    branched = shop.types("branch", "last", "review", "--output-format", "json")
    assert (branched.code, branched.json["governing"]) == (0, sorted(WRITES)), branched.out
    assert ".github/workflows/ci.yml" in branched.err
