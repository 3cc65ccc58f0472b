"""The cost of a policy decision: rules of all kinds, common targets, and lines that are designed to be slow."""

from __future__ import annotations

import statistics
import time
from typing import Final

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.policy.policy import RulesPolicy, build_rules_policy

GOALS: Final = {
    "decision_ms_200_rules_p99": ("<=", 2.0),
    "decision_ms_200_rules_worst_kind": ("<=", 2.0),
    "fresh_grant_ms_200_rules": ("<=", 10.0),
    "hostile_line_ms_worst": ("<=", 100.0),
}

ROOT: Final = "/home/me/project"
AGENT: Final = AgentId("coder")
CARD: Final = ToolCard(spec=ToolSpec(name="execute_script", description=""), group="command")
COMMANDS: Final = (
    "git status",
    "git push origin main",
    "npm test -- --watch && git add -A && git commit -m 'a message'",
    "cat src/a.py | grep -n needle | sort | uniq -c | head -5",
    "sudo tool7 sub7 --x",
    "for f in a b; do echo $f; done",
    "cd web && npm run build > out.txt 2>&1",
    "python -c 'import os; os.system(1)'",
)
PATHS: Final = ("src/a/b/c.py", ".env", "/etc/hosts", "folder7/deep/x.py", ".git/config", "x" * 200)
HOSTS: Final = ("docs.python.org", "a.b.c.host7.example.org:8080", "127.0.0.1")
HOSTILE: Final = {
    "a megabyte of commands": "ls; " * 250_000,
    "just short enough": "ls; " * 8_000,
    "one long word": "ls " + "x" * 32_000,
    "many words": "tool7 " + " ".join(f"a{number}" for number in range(280)),
    "many brackets": "(" * 10_000 + "ls" + ")" * 10_000,
    "many brackets with blanks": "( " * 10_000 + "ls" + " )" * 10_000,
    "many substitutions": "ls " + "$(" * 10_000,
    "many quotations": "ls " + "'a'\"b\"" * 5_000,
    "many backticks": "ls " + "`ls` " * 6_000,
    "many here-documents": "".join(f"cat <<'E{number}'\nx\nE{number}\n" for number in range(190)),
    "many words of a wrapper": "sudo " + "tool7 " * 280,
    "many paths": "cat " + " ".join(f"a/b/c{number}" for number in range(280)),
    "many backslashes": "ls " + "\\a" * 16_000,
}


def rules(count: int) -> list[str]:
    """Return rules of all kinds and levels."""
    levels = ("allow", "ask", "deny", "notify")
    kinds = (
        "command tool{0} sub{0}",
        "path folder{0}/**/*.py",
        "path **/name{0}*.txt write",
        "host *.host{0}.example.org",
        "command sudo tool{0}",
        "tool mcp__server{0}__*",
        "path **/deep{0}/**",
        "line tool{0} --exactly",
    )
    return [f"{levels[at % 4]} {kinds[at // 4 % 8].format(at)}" for at in range(count)]


def targets() -> list[Target]:
    """Return common targets."""
    return [
        *(Target(kind="command", value=text) for text in COMMANDS),
        *(Target(kind="path", value=path, writes=writes) for path in PATHS for writes in (False, True)),
        *(Target(kind="host", value=host) for host in HOSTS),
    ]


def took(policy: RulesPolicy, target: Target, grants: tuple[str, ...] = ()) -> float:
    """Return the CPU milliseconds of one decision. CPU time ignores other load on this machine."""
    begin = time.thread_time()
    policy.decide(AGENT, CARD, (target,), grants)
    return (time.thread_time() - begin) * 1000


def run(rounds: int = 200) -> dict[str, float]:
    """Measure all figures of the policy."""
    figures: dict[str, float] = {}
    for count in (0, 200):
        policy = build_rules_policy({"user": rules(count)}, ROOT)
        times = {target: [took(policy, target) for _ in range(rounds)][1:] for target in targets()}
        every = sorted(one for some in times.values() for one in some)
        figures[f"decision_ms_{count}_rules_median"] = statistics.median(every)
        figures[f"decision_ms_{count}_rules_p99"] = every[len(every) * 99 // 100]
        figures[f"decision_ms_{count}_rules_worst_kind"] = max(statistics.median(some) for some in times.values())
    policy = build_rules_policy({"user": rules(200)}, ROOT)
    fresh = [took(policy, targets()[0], (f"allow tool t{number}",)) for number in range(rounds)]
    figures["fresh_grant_ms_200_rules"] = statistics.median(fresh)
    slow = [took(policy, Target(kind="command", value=text)) for text in HOSTILE.values()]
    figures["hostile_line_ms_worst"] = max(slow)
    return figures
