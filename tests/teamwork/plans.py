"""Strategies that make plans and graphs of subtasks."""

from __future__ import annotations

from hypothesis import strategies as st

from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.teamwork.planner import read_rules

AGENTS = tuple(read_rules().subtasks)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PATHS = st.sampled_from(["src/a.py", "src/b.py", "src/**", "docs/**", "*.md", "tests/x/*.py", "web", "web/app.ts"])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[PlannedSubtask, ...]:
    """Subtasks with any dependencies among them, also circular ones."""
    names = [f"s-{number}" for number in range(draw(st.integers(1, 6)))]
    needs = st.lists(st.sampled_from(names), max_size=2, unique=True)
    return tuple(PlannedSubtask(id=name, agent="code-writer", dependencies=tuple(draw(needs))) for name in names)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans without faults."""
    subtasks: list[PlannedSubtask] = []
    for number in range(draw(st.integers(1, 8))):
        before = [subtask.id for subtask in subtasks]
        subtask = PlannedSubtask(
            id=f"part-{number}",
            name=draw(TEXT),
            agent=draw(st.sampled_from(AGENTS)),
            description=draw(TEXT),
            dependencies=tuple(draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else ()),
            priority=draw(st.integers(0, 4)),
            seconds=draw(st.integers(0, 400)),
            writes=tuple(draw(st.lists(PATHS, unique=True, max_size=2))),
            symbols=tuple(draw(st.lists(PATHS.map(lambda path: f"{path}:f"), max_size=1))),
            required=draw(st.booleans()),
            tries=draw(st.integers(1, 10)),
        )
        subtasks.append(subtask)
    return Plan(
        request=draw(TEXT.filter(str.strip)),
        task_types=tuple(draw(st.lists(st.sampled_from(["testing", "bug-fix", "documentation"]), unique=True))),
        subtasks=tuple(draw(st.permutations(subtasks))),
        source="file",
        on_failure=draw(st.sampled_from(["stop", "continue", "escalate"])),
        phases=draw(st.booleans()),
        max_concurrent=draw(st.integers(1, 64)),
    )
