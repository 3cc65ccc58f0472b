"""Taking over what a person's hooks would run, and what nobody has proven: it is said before it is done."""

import shutil
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer
from tests.e2e.typing import ENTER, Typing
from tests.e2e.workshop import PERSON, Workshop, call, git, turns
from tests.sampling import first

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

ALONE = ("--non-interactive", "--output-format", "json")
LINT = "scripts/lint.sh"
EVIL = {"search": "true", "replace": "touch .git/ran"}
PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt", LINT])
GOOD = (PLAN, turns("good, red"), Answer(text="It is red."))
MEDDLES = (PLAN, turns("good, red"), call("patch", 2, file=LINT, edits=[EVIL]), Answer(text="It is red."))
FAILS = (PLAN, turns("bad"), *[Answer(text="It is done.")] * 4)


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    shop = Workshop(tmp_path, **{LINT: "true\n"})
    hooked(shop, f"sh {LINT}")
    return shop


def hooked(shop: Workshop, line: str) -> None:
    hook = shop.repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{line}\n")
    hook.chmod(0o755)


def ran(shop: Workshop) -> bool:
    return (shop.repo / ".git/ran").exists()


def head(shop: Workshop) -> str:
    return git(shop.repo, "log", "--format=%s").splitlines()[0]


@pytest.mark.req("G-2")
def test_work_that_changes_what_hooks_run_is_not_committed_unasked(shop: Workshop) -> None:
    ended = shop.runs([*MEDDLES], "Paint it.", *ALONE, "--apply")
    taken = ended.json["taken"]
    assert isinstance(taken, dict)
    assert (ended.code, taken["status"], shop.reads(), ran(shop)) == (1, "not_taken", "good\n", False)
    assert f"changes what your hooks run: {LINT}" in str(taken["why"])
    said = shop.types("apply", "last")
    assert (said.code, shop.reads(), head(shop)) == (2, "good\n", "first")
    assert LINT in said.err
    assert "--no-hooks" in said.err
    without = shop.types("apply", "last", "--no-hooks")
    assert (without.code, shop.reads(), head(shop), ran(shop)) == (0, "good, red\n", "Paint it.", False)
    assert f"From your next commit on your hooks run what the work made of {LINT}." in without.err
    assert shop.types("undo", "last").code == 0
    assert shop.types("apply", "last", "--hooks").code == 0
    assert ran(shop)


@pytest.mark.parametrize(("key", "commits", "runs"), first(("y", True, True), ("n", True, False), ("", False, False)))
def test_at_a_terminal_a_person_is_asked_about_it(shop: Workshop, key: str, commits: bool, runs: bool) -> None:
    assert shop.runs([*MEDDLES], "Paint it.", *ALONE).code == 0
    with Typing(shop.home, "apply", "last", cwd=str(shop.repo), GREENROOM_SANDBOX="auto", **PERSON) as typing:
        typing.until("change nothing")
        assert LINT in typing.seen
        typing.press(key, ENTER)
        assert typing.ends() == (0 if commits else 2)
    assert (head(shop) == "Paint it.", ran(shop)) == (commits, runs)


def test_hooks_do_not_get_the_keys_of_models(shop: Workshop) -> None:
    hooked(shop, "env >.git/env")
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    key = "sk-0123456789abcdef0123"
    around = {"OPENAI_API_KEY": key, "MY_COPY": key, "TAVILY_API_KEY": "tvly-1", "MINE": "mine"}
    applied = shop.types("apply", "last", **around)
    assert applied.code == 0, applied.err
    told = dict(line.partition("=")[::2] for line in shop.reads(".git/env").splitlines())
    assert [told.get(name) for name in around] == [None, None, None, "mine"]


@pytest.mark.req("G-2")
def test_what_is_not_proven_is_said_before_it_is_a_commit_and_never_applied_at_once(shop: Workshop) -> None:
    ended = shop.runs([*FAILS], "Paint it.", *ALONE, "--apply")
    taken = ended.json["taken"]
    assert isinstance(taken, dict)
    assert (ended.json["verified"], taken["status"], shop.reads(), head(shop)) == (
        False,
        "not_taken",
        "good\n",
        "first",
    )
    applied = shop.types("apply", "last")
    assert (applied.code, shop.reads(), head(shop)) == (0, "bad\n", "Paint it.")
    (line,) = (one for one in applied.err.splitlines() if one.startswith("NOT verified: "))
    assert "quick" in line
    assert shop.types("undo", "last").code == 0
    branched = shop.types("branch", "last", "other")
    assert (branched.code, "NOT verified: " in branched.err) == (0, True)


@pytest.mark.prove
def test_who_only_looks_at_a_job_makes_no_copy_of_it_again(shop: Workshop) -> None:
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    assert shop.types("discard", "last", "--yes").code == 0
    copies = shop.home / "cache/greenroom/worktrees"
    assert not [*copies.glob("*/trees/*")]
    for words in (("diff", "last"), ("apply", "last"), ("blame", "app.txt:1"), ("show", "last"), ("undo", "last")):
        said = shop.types(*words)
        assert said.code == 0, said.err
        assert not [*copies.glob("*/trees/*")], words
    assert shop.types("discard", "last", "--yes").code == 0
    assert not [*copies.glob("*/trees/*")]
    listed = shop.types("workspaces", "list")
    assert f"There are no copies. {shop.repo} keeps work without a copy: run " in listed.out
    assert "(not applied: patch app.txt). `greenroom apply RUN` takes it over" in listed.out
    assert shop.types("workspaces", "clean", "--refs", "--discard").code == 0
    assert (
        shop.types("workspaces", "list").out == "There are no copies, and nothing is kept here that is not applied.\n"
    )
