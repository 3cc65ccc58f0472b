"""What has to be true after each line of the story, looked up in the files, in git and in the log; never assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Checked
from greenroom.core.ports.sandbox import Tier
from greenroom.testing.story import script, shop
from greenroom.testing.story.reading import Log
from greenroom.testing.story.shop import git, whole

BEHIND_WALLS: Final = "built-in: sandboxed"
"""The rule in the log of a command that nobody is asked about because of the walls around it."""


@record
class Fact:
    """A sentence about what was found, and whether that is as it has to be."""

    held: bool
    text: str


@record
class Before:
    """The person's repository before anything happened: a name for all of it, and its last commit."""

    whole: str
    head: str


def is_so(text: str, *, held: bool, otherwise: str) -> Fact:
    """Of two sentences the one that is true."""
    return Fact(held=held, text=text if held else otherwise)


def before(root: Path) -> Before:
    """As it is now."""
    return Before(whole=whole(root), head=git(root, "rev-parse", "HEAD").strip())


def untouched(root: Path, was: Before) -> Fact:
    """Nothing of the person's is different."""
    now = whole(root)
    return is_so(
        f"your files are as they were: {now}",
        held=now == was.whole,
        otherwise=f"your files are not as they were: {was.whole} is now {now}",
    )


def dirty(root: Path) -> Iterator[Fact]:
    """There is a commit, and something that is not in it."""
    loose = git(root, "status", "--short", "--untracked-files=all").split("\n")
    yield is_so(
        f"{shop.LOOSE} is yours, and in no commit",
        held=f"?? {shop.LOOSE}" in loose,
        otherwise=f"{shop.LOOSE} is committed, or gone",
    )
    yield Fact(held=True, text=f"all of it, byte for byte, is called {whole(root)}")


# ------------------------------------------------------------------------------------------------------------ the work


def based(log: Log) -> Iterator[Fact]:
    """The project's own checks were found, and ran before anything was changed."""
    ran = log.checked[0] if log.checked else None
    if ran is None:
        left = [str((one.result or {}).get("output") or one.error) for one in log.of("baseline")]
        yield Fact(held=False, text=f"no check ran before the work: {' '.join(left) or 'none was found'}")
        return
    yield is_so(
        f"{ran.check} was found and ran first: {ran.passed} pass, {ran.failing} already fails",
        held=(ran.passed, ran.failing) == (shop.PASSING, 1),
        otherwise=f"{ran.check} ran first: {ran.passed} pass and {ran.failing} fail; "
        f"it should be {shop.PASSING} and 1{_because(ran)}",
    )


def _because(ran: Checked) -> str:
    last = [line for line in (ran.reason or ran.excerpt).splitlines() if line.strip()][-1:]
    return f" ({last[0].strip()})" if last else ""


def killed(log: Log, root: Path, code: int, pid: int) -> Iterator[Fact]:
    """The process is dead, in the middle of a step; the work is half done, and only in the copy."""
    yield is_so(f"process {pid} is dead, by signal 9", held=code == -9, otherwise=f"process {pid} ended with {code}")
    cut = log.running[0].step_id if log.running else ""
    yield is_so(
        f"the log has step {cut} begun, and not ended",
        held=bool(cut),
        otherwise="the log knows of no step that was cut off",
    )
    now = set(changed(root, log))
    yield is_so(
        "half done, and only in the copy: export.py is written, its test is not",
        held=now == {"export.py"},
        otherwise=f"the copy should have export.py changed and nothing else, but has {_listed(now)}",
    )


def resumed(log: Log, first: Log, code: int, pid: int) -> Iterator[Fact]:
    """Another process went on in the same run, and did nothing twice."""
    yield is_so(
        f"the same run {log.team}, taken over by process {pid}",
        held=log.team == first.team and any(f":{pid}:" in one for one in log.owners),
        otherwise=f"run {first.team} was not taken over by process {pid}: "
        f"the newest is {log.team}, taken over by {_listed(log.owners)}",
    )
    twice = [name for name, count in log.endings.items() if count != 1]
    yield is_so(
        f"{len(log.endings)} steps, and each ended once",
        held=not twice and len(log.endings) > len(first.endings),
        otherwise=f"steps that ended more than once: {_listed(twice)}, of {len(log.endings)}",
    )
    lost = set(first.endings) - set(log.endings)
    yield is_so("nothing that was done before was lost", held=not lost, otherwise=f"lost: {_listed(lost)}")
    yield is_so(
        f"it ended with exit code {code}: verified", held=code == 0, otherwise=f"it ended with exit code {code}"
    )


def mended(log: Log, tier: Tier) -> Iterator[Fact]:
    """What the agent called done was not, it was told so, and mended it; what it wrote ran behind walls."""
    first, *_ = (*verdicts(log), {})
    missing = _texts(first, "missing")
    yield is_so(
        f"it said “{script.TOO_SOON}”, and the checks said: {_listed(missing)}",
        held=any(script.NEW in one for one in missing),
        otherwise=f"{script.NEW} should have failed; the checks said: {_listed(missing)}",
    )
    tries = log.of("deliver")
    mend = [one for one in log.of("patch") if len(tries) > 1 and tries[0].ended_in < one.ended_in < tries[-1].ended_in]
    good = bool(mend) and mend[-1].state == "finished"
    told = mend[-1].error if mend else "no step changed a file after that"
    step = mend[-1].step_id if mend else ""
    yield is_so(f"step {step} mended export.py", held=good, otherwise=f"it was not mended: {told}")
    last = log.checked[-1] if len(log.checked) > 1 else None
    new = last.compared.new if last is not None and last.compared is not None else ()
    yield is_so(
        f"{last.check} ran again: {last.passed} pass, and only the old one fails" if last else "",
        held=last is not None and (last.passed, last.failing, len(new)) == (shop.PASSING + 1, 1, 0),
        otherwise=f"after that it should be {shop.PASSING + 1} that pass and 1 that fails, "
        + (f"but {last.passed} pass and {last.failing} fail" if last else "but no check ran"),
    )
    yield walled(log, tier)


def walled(log: Log, tier: Tier) -> Fact:
    """Where tests ran that the agent wrote, by the rule that let them run."""
    rules = {one.terms.rule if one.terms is not None else "" for one in log.of("deliver")}
    if tier == "none":
        return is_so(
            "there is no sandbox here: its tests ran because a person said yes",
            held=BEHIND_WALLS not in rules,
            otherwise="its tests ran as if there were a sandbox, and there is none",
        )
    return is_so(
        f"the tests that it wrote ran in the sandbox ({tier}), and nobody had to be asked",
        held=rules == {BEHIND_WALLS},
        otherwise=f"its tests should have run in the sandbox ({tier}), but ran by the rule {_listed(sorted(rules))}",
    )


def proven(root: Path, log: Log, told: str) -> Iterator[Fact]:
    """Done is what is proven, on exactly what is handed over; and the report says what nobody has proven."""
    state = ({}, *verdicts(log))[-1].get("state", "not judged")
    yield is_so("the verdict is: verified", held=state == "verified", otherwise=f"the verdict is: {state}")
    tree = _tree(root, log)
    ran = {one.tree for one in log.checked[1:]}
    yield is_so(
        f"the receipt is about tree {tree[:10]}, and that is what you get",
        held=bool(tree) and bool(log.checked) and log.checked[-1].tree == tree,
        otherwise=f"you would get tree {tree[:10] or 'none'}, but the checks ran on {_listed(one[:10] for one in ran)}",
    )
    now = changed(root, log)
    yield is_so(
        f"{len(now)} files are different: {_listed(now)}",
        held=sorted(now) == sorted(script.FILES),
        otherwise=f"these should be different: {_listed(script.FILES)}; these are: {_listed(now)}",
    )
    honest = [one.strip() for one in told.splitlines() if "NOT verified" in one and script.UNREAD in one]
    yield is_so(
        f"it says itself what is NOT verified: {script.UNREAD}",
        held=bool(honest),
        otherwise=f"it does not say that {script.UNREAD} is NOT verified",
    )


# --------------------------------------------------------------------------------------------------- what becomes of it


def applied(root: Path, log: Log, was: Before) -> Iterator[Fact]:
    """One commit, in the person's name, with the work and nothing else."""
    commits = git(root, "rev-list", f"{was.head}..HEAD").split()
    yield is_so("one commit more", held=len(commits) == 1, otherwise=f"{len(commits)} commits more, not one")
    you, author = git(root, "config", "user.name").strip(), git(root, "log", "-1", "--format=%an").strip()
    yield is_so(f"in your name: {author}", held=author == you, otherwise=f"its author is {author}, and you are {you}")
    paths = git(root, "diff", "--name-only", was.head, "HEAD").split()
    same = not git(root, "diff", "--stat", f"refs/greenroom/{log.team}/main", "HEAD", "--", *script.FILES)
    yield is_so(
        "in it is what was proven, and nothing else",
        held=sorted(paths) == sorted(script.FILES) and same,
        otherwise=f"in it is {_listed(paths)}" + ("" if same else ", and not as it was proven"),
    )
    loose = git(root, "status", "--short").strip()
    yield is_so(
        f"{shop.LOOSE} is still yours, and in no commit",
        held=loose == f"?? {shop.LOOSE}",
        otherwise=f"git status says: {loose or 'nothing'}",
    )


def place_of(root: Path) -> str:
    """The line that was mended, as one says it to `blame`; the first if it is not there."""
    lines = (root / "export.py").read_text("utf-8").splitlines()
    return f"export.py:{next((number for number, one in enumerate(lines, 1) if script.MENDED in one), 1)}"


def blamed(log: Log, told: str) -> Iterator[Fact]:
    """Blame names the run, the step that the log has for it, and its reason."""
    mend = [one.step_id for one in log.of("patch") if one.state == "finished"][-1:]
    step = mend[0] if mend else "?"
    yield is_so(
        f"it names run {log.team} and step {step}, as the log has them",
        held=bool(mend) and log.team in told and f"{step} " in told,
        otherwise=f"it should name run {log.team} and step {step}",
    )
    reason = script.TURNS[script.MENDS].text
    yield is_so(f"and why: {reason}", held=reason in told, otherwise=f"it does not say why: {reason}")


def undone(root: Path, was: Before) -> Iterator[Fact]:
    """All is as it was."""
    now = whole(root)
    yield is_so(
        f"before {was.whole}, after {now}: byte for byte",
        held=now == was.whole,
        otherwise=f"before {was.whole}, after {now}: not the same",
    )
    head = git(root, "rev-parse", "HEAD").strip()
    yield is_so(f"the last commit is {head[:10]} again", held=head == was.head, otherwise=f"HEAD is {head[:10]}")


# -------------------------------------------------------------------------------------------------------------- looking


def changed(root: Path, log: Log) -> Sequence[str]:
    """The files that the work has changed by now, by its commits in the repository."""
    base = f"refs/greenroom/{log.team}/@base"
    try:
        return git(root, "diff", "--name-only", base, f"refs/greenroom/{log.team}/main").split()
    except WorldFault:
        return ()  # there is no such commit: it has changed nothing


def verdicts(log: Log) -> Sequence[Mapping[str, object]]:
    """What was found each time when the agent said that it is done."""
    held = [(one.result or {}).get("verdict") for one in log.of("deliver")]
    return [one for one in held if isinstance(one, Mapping)]


def _tree(root: Path, log: Log) -> str:
    try:
        return git(root, "rev-parse", f"refs/greenroom/{log.team}/main^{{tree}}").strip()
    except WorldFault:
        return ""


def _texts(held: Mapping[str, object], name: str) -> Sequence[str]:
    found = held.get(name)
    return [str(one) for one in found] if isinstance(found, list | tuple) else []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
