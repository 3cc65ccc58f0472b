"""Artifacts as people read them: the marks of citations that no source stands behind."""

import pytest

from greenroom.app.artifacts import add_sources
from greenroom.core.base.ids import ArtifactId, TaskId
from greenroom.core.state.knowledge import Artifact

REPORT = Artifact(
    task_id=TaskId("t1"),
    artifact_id=ArtifactId("report"),
    title="Report",
    media_type="text/markdown",
    blob="",
    size=1,
    lines=1,
    by="lead",
    at=0,
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Ulm is cheese.[1] Really[2][1].", "[1], [2]"),
        ("很多[8]。", "[8]"),
        ("`values[10]` and\n```\n[3]\n```", ""),
        ("[1](https://example.org) is a link.", ""),
    ],
)
def test_marks_without_a_source_are_named_at_the_end(text: str, numbers: str) -> None:
    shown = add_sources(REPORT, text)
    assert shown == (f"{text}\n\n**Not checked, and without a source: {numbers}.**\n" if numbers else text)
