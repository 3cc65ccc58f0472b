"""Taking over what a person's hooks would run, and what nobody has proven: it is said before it is done."""

from pathlib import Path

import pytest

from tests.e2e.workshop import Workshop, call, done, git, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

ALONE = ("--non-interactive", "--output-format", "json")
LINT = "lefthook.yml"
EVIL = {"search": "true", "replace": "other"}
PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt", LINT])
GOOD = (PLAN, turns("good, red"), done("It is red."))
MEDDLES = (PLAN, turns("good, red"), call("patch", 2, file=LINT, edits=[EVIL]), done("It is red."))
FAILS = (PLAN, turns("bad"), *[done("It is done.")] * 4)


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    shop = Workshop(tmp_path, **{LINT: "true\n"})
    hooked(shop, "touch .git/ran")
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
def test_work_that_sets_up_hooks_is_committed_without_any_unless_a_person_says_so(shop: Workshop) -> None:
    ended = shop.runs([*MEDDLES], "Paint it.", *ALONE)
    assert ended.code == 0, ended.err
    without = shop.types("apply", "last")
    assert (without.code, shop.reads(), head(shop), ran(shop)) == (0, "good, red\n", "Paint it.", False)
    assert f"sets up hooks ({LINT}), so it is committed without running any" in without.err
    assert f"From your next commit on your hooks run what the work made of {LINT}." in without.err
    assert shop.types("undo", "last").code == 0
    assert shop.types("apply", "last", "--hooks").code == 0
    assert ran(shop)


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
    (line,) = (one for one in applied.err.splitlines() if one.startswith("failed: "))
    assert "quick" in line
    assert shop.types("undo", "last").code == 0
    branched = shop.types("branch", "last", "other")
    assert (branched.code, "failed: " in branched.err) == (0, True)


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
