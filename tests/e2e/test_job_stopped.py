"""Taking over that is stopped half-way, and what programs read of it: what is said is so."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.jobs import PERSON, call, done, git
from tests.e2e.terminal import GREENROOM, PATIENCE, environment
from tests.e2e.workshop import Workshop, turns
from tests.sampling import first
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

ALONE = ("--non-interactive", "--output-format", "json")
PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
HOLDS = "#!/bin/sh\ntouch .git/begun\nwhile [ ! -e .git/go ]; do sleep 0.05; done\nexit {code}\n"


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def command(shop: Workshop, *words: str) -> subprocess.Popen[bytes]:
    env = {**environment(shop.home, GREENROOM_SANDBOX="auto", **PERSON)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*GREENROOM, *words], cwd=shop.repo, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    first(
        (signal.SIGINT, 0, "Stopped. Applied, commit "), (signal.SIGTERM, 1, "Stopped. Applied, not committed: 1 file.")
    ),
)
def test_who_stops_an_apply_hears_how_the_files_stand(
    shop: Workshop, number: signal.Signals, code: int, said: str
) -> None:
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    hook = shop.repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOLDS.format(code=code))
    hook.chmod(0o755)
    with command(shop, "apply", "last") as applying:
        end = time.monotonic() + PATIENCE
        while not (shop.repo / ".git/begun").exists():
            assert applying.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(applying.pid, number)
        (shop.repo / ".git/go").touch()
        _, err = applying.communicate(timeout=PATIENCE)
    assert (applying.returncode, shop.reads()) == (128 + number, "good, red\n")
    assert said in err.decode()
    assert "greenroom undo " in err.decode()
    assert "never retrieved" not in err.decode()
    assert ("Paint it." in git(shop.repo, "log", "--format=%s")) == (code == 0)


def test_a_patch_in_a_pipe_is_whole_and_byte_for_byte(shop: Workshop) -> None:
    line = "printf 'caf\\351\\r\\n' >latin.txt; head -c 300 /dev/urandom >blob; yes 0123456789 | head -c 300000 >long"
    makes = call("execute_script", 2, script=line)
    assert shop.runs([PLAN, makes, turns("good, red"), done("It is red.")], "Paint it.", *ALONE).code == 0
    with command(shop, "diff", "last") as diffing:
        patch, err = diffing.communicate(timeout=PATIENCE)
    assert (diffing.returncode, err) == (0, b"")
    assert b"+caf\xe9\r\n" in patch
    subprocess.run(["git", "apply", "-"], cwd=shop.repo, input=patch, check=True)
    assert (shop.repo / "latin.txt").read_bytes() == b"caf\xe9\r\n"
    assert ((shop.repo / "long").stat().st_size, (shop.repo / "blob").stat().st_size) == (300_000, 300)


@pytest.mark.parametrize("dirty", first(True, False))
def test_a_commit_that_is_not_what_was_checked_says_so(shop: Workshop, dirty: bool) -> None:
    shop.puts("lib.py", "A = 1\n")
    if not dirty:
        git(shop.repo, "add", "--all")
        git(shop.repo, "commit", "--quiet", "--message=second")
    assert shop.runs([*GOOD], "Paint it.", *ALONE).code == 0
    branched = shop.types("branch", "last", "other", "--output-format", "json")
    applied = shop.types("apply", "last", "--output-format", "json")
    for said in (branched, applied):
        told = "The checks ran with what you had not committed; the commit is without it: lib.py." in said.err
        assert (said.code, said.json["exact"], told) == (0, not dirty, dirty)
