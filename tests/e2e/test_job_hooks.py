"""Taking over what a person's hooks would run, and what nobody has proven: it is said before it is done."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, done, git
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

ALONE = ("--non-interactive", "--output-format", "json")
LINT = "lefthook.yml"
EVIL = {"search": "true", "replace": "other"}
PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt", LINT])
GOOD = (PLAN, turns("good, red"), done("It is red."))
MEDDLES = (PLAN, turns("good, red"), call("patch", 2, file=LINT, edits=[EVIL]), done("It is red."))


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
