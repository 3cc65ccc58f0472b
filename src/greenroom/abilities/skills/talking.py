"""All skills of agents that talk, made for one another: they share who is who and what was said."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.call_agent import CallAgent
from greenroom.abilities.skills.compact import Compact
from greenroom.abilities.skills.converse import Converse
from greenroom.abilities.skills.filter_tools import FilterTools
from greenroom.abilities.skills.summarize import Summarize
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.reading import Reader


def talking(
    models: Models,
    tools: Sequence[ToolSpec] = (),
    *,
    solo: bool = False,
    reader: Reader | None = None,
    project: str = "",
    filter_above: int = 0,
) -> tuple[Executor, ...]:
    """`converse`, and what follows from it in a long talk and at its end. See `Converse` for what is given."""
    converse = Converse(models, tools, solo=solo, reader=reader, project=project, filter_above=filter_above)
    summarize = Summarize(models, converse.cast, converse.transcripts)
    return (converse, Compact(models), summarize, FilterTools(models, tools, filter_above), CallAgent())
