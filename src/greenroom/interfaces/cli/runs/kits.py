"""The kits that this door can run: a team says in its log which one it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.names import JOB
from greenroom.app.kit import KitMaker
from greenroom.app.library.results import kits_of_programs
from greenroom.app.organisation.words import KIT
from greenroom.app.toolset.by_hand import by_hand_kits
from greenroom.interfaces.cli.asked.pace import demo_pace
from greenroom.interfaces.cli.runs.means import Means
from greenroom.testing.demo import demo_kits


def kits(home: Path, means: Means) -> Mapping[str, KitMaker]:
    """All kits by name."""
    demos = demo_kits(home, pace=demo_pace(), around=means.around)
    talks = talk_kits(means, means.notes, means.hands, means.patience)
    own = {JOB: means.job, KIT: means.organisation}
    return {**own, **demos, **talks, **by_hand_kits(means.hands), **kits_of_programs()}
