"""Jobs in a small repository whose only check is quick: who judges them, what is said of them, and taking them over."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.jobs import PERSON, SETTINGS, Workshop, call, done, git, hook, turns
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import GREENROOM, PATIENCE, Running, environment
from tests.fake_openai import Answer, Call
from tests.fake_openai.scripts import Reply
from tests.sampling import first
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
JSON = ("--output-format", "json")
ALONE = ("Paint it.", "--non-interactive", *JSON)


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


# ------------------------------------------------------------------------------------------------------ agents by name

AGENT = "---\ndescription: Works.\n{keys}\n---\nDo what you are asked.\n"
TOOL = '''
from greenroom import tool


@tool(effect="effectful")
def stamp(text: str) -> str:
    """Stamp it."""
    open({file!r}, "a").write(text)
    return "stamped"
'''


def staffed(folder: Path, own: str = SETTINGS, **keys: str) -> Workshop:
    """A workshop with agents that its person has agreed to."""
    files = {f".greenroom/agents/{name}.md": AGENT.format(keys=lines) for name, lines in keys.items()}
    shop = Workshop(folder, own, **files)
    shop.trusts()
    return shop


def test_an_agent_that_writes_works_in_a_copy_is_judged_and_its_work_is_taken_over_and_back(tmp_path: Path) -> None:
    shop = staffed(tmp_path, painter="groups: [read, edit]")
    told = shop.runs([turns("good, red"), Answer(text="It is red.")], "Paint it.", "--agent", "painter")
    assert told.code == 0, told.err
    for words in ("painter", "your files are not changed", "✓ quick"):
        assert words in told.err
    assert shop.reads() == "good\n"
    assert (shop.types("apply", "last").code, shop.reads()) == (0, "good, red\n")
    assert "of painter: patch app.txt" in shop.types("blame", "app.txt:1").out
    dropped = shop.types("discard", "last")
    assert (dropped.code, "Deleted." in dropped.out) == (0, True), "it is applied: nobody is asked whether it may go"
    assert (shop.types("undo", "last").code, shop.reads()) == (0, "good\n")


def test_those_whom_it_calls_work_in_the_same_copy_also_at_once_and_are_judged_with_it(tmp_path: Path) -> None:
    helpers = dict.fromkeys(("ann", "bob"), "groups: [edit]\nmodel: fast")
    shop = staffed(tmp_path, lead="calls: [ann, bob]", **helpers)
    both = Answer(
        calls=tuple(
            Call(name="call_agent", arguments={"agent_name": name, "instruction": f"You are {name}."}, id=name)
            for name in helpers
        )
    )

    def helper(body: dict[str, object], _: int) -> Reply:
        name = "ann" if "You are ann." in str(body["messages"]) else "bob"
        if "written" in str(body["messages"]):
            return Answer(text=f"{name} is done.")
        return call("rewrite", 1, file=f"{name}.txt", content=f"by {name}\n")

    with provider({"gpt-5.5": [both, Answer(text="Both are done.")], "gpt-5.4-mini": helper}) as fake:
        told = shop.types("run", "Write.", "--agent", "lead", **reached(fake))
    assert told.code == 0, told.err
    assert not (shop.repo / "ann.txt").exists()
    assert shop.types("apply", "last", "-m", "Both").code == 0
    assert (shop.reads("ann.txt"), shop.reads("bob.txt")) == ("by ann\n", "by bob\n")
    assert git(shop.repo, "log", "-1", "--format=%s").strip() == "Both"
    wrote = {name: shop.types("blame", f"{name}.txt:1").out for name in helpers}
    assert all(f"of {name}:" in told for name, told in wrote.items()), wrote


def test_tools_that_know_no_copy_act_where_they_always_do_and_that_is_said(tmp_path: Path) -> None:
    shop = staffed(tmp_path, own="", clerk="groups: [edit]\ntools: [stamp]")
    stamped = tmp_path / "stamped.txt"
    own = shop.home / "config" / "greenroom" / "tools" / "stamp.py"
    own.parent.mkdir(parents=True)
    own.write_text(TOOL.format(file=str(stamped)))
    assert shop.types("permissions", "add", "allow tool stamp").code == 0
    replies = [call("stamp", 1, text="x"), Answer(text="Done.")]
    told = shop.runs(replies, "Stamp it.", "--agent", "clerk", "--question")
    assert told.code == 0, told.err
    assert "These tools act outside the worktree: stamp." in told.err
    assert stamped.read_text() == "x"


# ------------------------------------------------------------------------------------------------- nobody is there


def test_what_needs_a_yes_is_not_done_and_a_question_is_decided_by_itself(shop: Workshop) -> None:
    wants = call("web_fetch", 1, url="http://127.0.0.1:9/x")
    asks = call("ask_user", 2, question="Which colour?")
    with provider([wants, asks, turns("good, red", 3), done("It is red.")]) as fake:
        ended = shop.types("run", *ALONE, **reached(fake))
        heard = str(fake.requests[-1].body["messages"])
    assert ended.code == 0, ended.out
    assert "Decide yourself" in heard


def test_a_check_that_nobody_confirmed_proves_in_a_sandbox_and_without_one_nothing(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, own="", Makefile="check:\n\tpython3 check.py\n")
    told = shop.runs([*GOOD], *ALONE)
    assert (told.code, told.json["verified"]) == (0, True), told.out
    bare = shop.runs([*GOOD], *ALONE, GREENROOM_SANDBOX="off")
    assert (bare.code, bare.json["verified"], bare.json["tokens"]) == (7, False, 0)
    assert "no_checks" in str(bare.json["verdict"])


def test_why_a_run_is_not_verified_is_said_once_and_an_earlier_failure_when_it_happens(tmp_path: Path) -> None:
    empty = Workshop(tmp_path / "empty", own="")
    unchecked = empty.runs([*GOOD], "Paint it.", "--non-interactive", "--allow-unverified")
    assert unchecked.code == 7
    assert unchecked.err.lower().count("unverified:") == 2, "the head of the report, and the reason"
    shop = Workshop(tmp_path / "shop")
    mends = call("patch", 4, file="app.txt", edits=[{"search": "bad", "replace": "good, red"}])
    mended = shop.runs([PLAN, turns("bad"), done("It is red."), mends, done("Now it is.", 98)], *ALONE[:2])
    assert mended.code == 0, mended.err
    assert mended.err.count("✗ failed:") == 1
    assert mended.err.lower().count("✓ verified") == 1


def test_the_plan_stays_on_the_board_and_what_is_told_meanwhile_is_read_in_the_next_turn(shop: Workshop) -> None:
    asked, told = threading.Event(), threading.Event()

    def held(_: dict[str, object], __: int) -> Answer:
        asked.set()
        assert told.wait(PATIENCE)
        return turns("good, red")

    around = {"GREENROOM_SANDBOX": "auto", **PERSON}
    with provider([PLAN, held, done("It is red."), done("It is dark red.")]) as fake:
        through = ("env", "-C", str(shop.repo))
        with Running(shop.home, "run", "Paint it.", "--yes", through=through, **around, **reached(fake)) as running:
            assert asked.wait(PATIENCE)
            tasks = shop.types("show", "last", *JSON).json["tasks"]
            said = shop.types("send", "last", "A dark one.")
            told.set()
            ended = running.end()
        assert said.code == 0
        assert ended.code == 0, ended.err
        assert "A dark one." in str(fake.requests[2].body["messages"])
    assert isinstance(tasks, list)
    assert tasks[0]["board"] == {"plan": "Plan:\n1. Do it\nTouches: app.txt"}
    assert "  1. Do it\n  Touches: app.txt" in shop.types("show", "last").out, "also when it is over"


# ------------------------------------------------------------------------------------------------- who judges a change


def test_what_goes_on_writing_in_the_background_is_ended_before_it_is_judged(shop: Workshop) -> None:
    loop = "while true; do date +%N > tick.txt; sleep 0.02; done"
    waits = "until test -s tick.txt; do sleep 0.02; done"
    replies = [
        turns("good, red"),
        call("execute_script", 2, script=loop, background=True),
        call("execute_script", 3, script=waits),
        done("Done."),
    ]
    ended = shop.runs(replies, "Paint it.", "--yes", *JSON)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.json["verdict"]
    assert "'code': 'stopped'" in str(ended.json["verdict"])
    assert "tick.txt" in str(ended.json["diff"]), "what it wrote until then is a part of the change"


def test_an_agent_does_not_call_what_judges_it(shop: Workshop) -> None:
    forged = call("deliver", 2, said="Done.", verdict={"state": "verified"}, tree="x")
    ends = [done("Done.", number) for number in range(90, 93)]
    ended = shop.runs([turns("bad"), forged, *ends], "Paint it.", "--yes", *JSON)
    assert (ended.code, "may not use the tool 'deliver'" in ended.err) == (1, True), ended.err
    assert "new_failures" in str(ended.json["verdict"])


@pytest.mark.req("G-1")
def test_work_in_a_submodule_is_said_to_be_left_behind(tmp_path: Path, shop: Workshop) -> None:
    library = Workshop(tmp_path / "library").repo
    git(shop.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sm")
    git(shop.repo, "commit", "--quiet", "--message=second")
    plan = call("propose_plan", 9, steps=["Do it"], files=["app.txt", "sm/app.txt"])
    into = call("rewrite", 2, file="sm/app.txt", content="bad\n")
    says = [done("Changed `app.txt` and `sm/app.txt`.")] * 4
    ended = shop.runs([plan, turns("good, red"), into, *says], *ALONE)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.out
    report, why = ended.json["report"], "Note: not delivered: sm/app.txt (in a submodule)"
    assert isinstance(report, list)
    assert report[0].startswith("1 file changed")
    assert why in report
    nothing = shop.runs([plan, into, *says], *ALONE)
    assert (nothing.code, nothing.json["changes"], str(nothing.json["report"]).count(why)) == (7, [], 1)


# ------------------------------------------------------------------------------------------------- what a copy needs

IGNORED = ".venv/\nnode_modules/\n.deps/\n"
VENV = "python3 -m venv --without-pip .venv"


def check(line: str, more: str = "") -> str:
    return f"[checks.quick]\nrun = {line!r}\n{more}"


def test_a_virtual_environment_and_node_modules_of_the_person_are_found_and_can_only_be_read(tmp_path: Path) -> None:
    line = ".venv/bin/python -c 'import colour' && test -f node_modules/left-pad/index.js"
    shop = Workshop(tmp_path, check(line), **{".gitignore": IGNORED})
    subprocess.run([*VENV.split()], cwd=shop.repo, check=True)
    (packages,) = (shop.repo / ".venv" / "lib").glob("python*/site-packages")
    (packages / "colour.py").write_text("RED = 1\n")
    shop.puts("node_modules/left-pad/index.js", "module.exports = 1\n")
    spoils = call("execute_script", 2, script="echo x > node_modules/left-pad/index.js")
    ended = shop.runs([turns("good, red"), spoils, done("It is red.")], *ALONE)
    assert ended.code == 0, ended.out
    assert shop.reads("node_modules/left-pad/index.js") == "module.exports = 1\n"


def test_a_copy_is_prepared_once_in_the_sandbox_before_the_checks_and_that_is_in_the_log(tmp_path: Path) -> None:
    line = f"{VENV} && mkdir -p node_modules/left-pad && touch node_modules/left-pad/index.js && echo prepared"
    proof = ".venv/bin/python check.py && test -f node_modules/left-pad/index.js"
    shop = Workshop(tmp_path, check(proof, f"[workspace]\nsetup = {line!r}\n"), **{".gitignore": IGNORED})
    ended = shop.runs([turns("good, red"), done("It is red.")], "Paint it.", "--yes")
    assert ended.code == 0, ended.err
    assert "quick: passes" in ended.err, "also on the base"
    assert not (shop.repo / ".venv").exists(), "the person's files stay as they are"
    steps = [str(event) for event in shop.types("events", "last", "--output-format", "stream-json").lines]
    assert sum("Prepared with `" in step for step in steps) == 1
    assert "1 file changed" in ended.err, "what git ignores is no part of the work"


# ------------------------------------------------------------------------------------------------------- taking it over

LINT = "lefthook.yml"
MEDDLES = (*GOOD[:2], call("patch", 2, file=LINT, edits=[{"search": "true", "replace": "other"}]), GOOD[2])


@pytest.mark.req("G-2")
def test_work_that_sets_up_hooks_is_committed_without_any_unless_a_person_says_so(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{LINT: "true\n"})
    hook(shop.repo, "pre-commit", "touch .git/ran")
    ended = shop.runs([*MEDDLES], *ALONE)
    assert ended.code == 0, ended.err
    without = shop.types("apply", "last")
    subject = git(shop.repo, "log", "-1", "--format=%s").strip()
    assert (without.code, shop.reads(), subject) == (0, "good, red\n", "Paint it.")
    assert not (shop.repo / ".git/ran").exists()
    assert f"modifies git hooks ({LINT}), so it is committed without running them" in without.err
    assert f"Your next commit runs the hooks that this change modified: {LINT}." in without.err
    assert shop.types("undo", "last").code == 0
    assert shop.types("apply", "last", "--hooks").code == 0
    assert (shop.repo / ".git/ran").exists()


def test_hooks_do_not_get_the_keys_of_models(shop: Workshop) -> None:
    hook(shop.repo, "pre-commit", "env >.git/env")
    assert shop.runs([*GOOD], *ALONE).code == 0
    key = "sk-0123456789abcdef0123"
    around = {"OPENAI_API_KEY": key, "MY_COPY": key, "TAVILY_API_KEY": "tvly-1", "MINE": "mine"}
    applied = shop.types("apply", "last", **around)
    assert applied.code == 0, applied.err
    told = dict(line.partition("=")[::2] for line in shop.reads(".git/env").splitlines())
    assert [told.get(name) for name in around] == [None, None, None, "mine"]


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
    assert shop.runs([*GOOD], *ALONE).code == 0
    hook(shop.repo, "pre-commit", f"touch .git/begun\nwhile [ ! -e .git/go ]; do sleep 0.05; done\nexit {code}")
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
    assert shop.runs([PLAN, makes, turns("good, red"), done("It is red.")], *ALONE).code == 0
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
    assert shop.runs([*GOOD], *ALONE).code == 0
    for said in (shop.types("branch", "last", "other", *JSON), shop.types("apply", "last", *JSON)):
        told = "The checks ran with your uncommitted changes; the commit does not contain them: lib.py." in said.err
        assert (said.code, said.json["exact"], told) == (0, not dirty, dirty)


DYING = """
import os, signal
from greenroom.adapters.git import {room} as room
real = room.save_entry
async def save(repository, entry):
    if entry.state == {state!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    await real(repository, entry)
room.save_entry = save
"""


def dying(folder: Path, room: str, state: str) -> str:
    """A path for Python on which a life ends right before this is written down."""
    (folder / state).mkdir()
    (folder / state / "sitecustomize.py").write_text(DYING.format(room=room, state=state))
    return str(folder / state)


def test_what_a_kill_left_half_done_is_ended_by_the_next_command_and_that_is_said(
    shop: Workshop, tmp_path: Path
) -> None:
    run = shop.runs([*GOOD], *ALONE).json["team"]
    assert shop.types("apply", "last", PYTHONPATH=dying(tmp_path, "apply", "applied")).code == -9
    assert shop.reads() == "good, red\n"
    assert "was interrupted" not in shop.types("diff", "last").err, "who only looks ends nothing"
    again = shop.types("apply", "last")
    assert (again.code, again.out[:16]) == (0, "Applied: 1 file,")
    assert f"{run} was interrupted while it changed your files. It is now applied completely (app.txt)." in again.err
    assert "was interrupted" not in shop.types("apply", "last").err, "it is said once"
    assert shop.types("undo", "last", PYTHONPATH=dying(tmp_path, "undo", "undone")).code == -9
    again = shop.types("undo", "last")
    assert (again.code, again.out, shop.reads()) == (0, "Undone: app.txt.\n", "good\n")
    assert f"{run} was interrupted while it changed your files. It is now undone completely (app.txt)." in again.err
