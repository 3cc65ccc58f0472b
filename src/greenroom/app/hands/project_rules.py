"""The rules that a project brings, in `.greenroom/permissions`: they hold for whoever works there, and only tighten."""

from __future__ import annotations

from pathlib import Path

from greenroom.app.hands.rules_file import EVERYWHERE, NAME, RulesFile
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.core.base.errors import WorldFault


def project_rules(root: Path) -> tuple[str, ...]:
    """All of them. A file that cannot be read is a `WorldFault`: to go on without it would be to loosen what it says.

    What it allows counts for nothing, as the policy reads it: it comes with a clone, so it is a stranger's word.
    """
    path = root / FOLDER / NAME
    if for_everybody(root) or not path.exists():
        return ()
    if not path.resolve().is_relative_to(root.resolve()):
        raise WorldFault(f"{path} is a link that leads out of the project, and is not read. Make it a file.")
    rules = RulesFile(path).listed()
    if rules.keys() - {EVERYWHERE}:
        raise WorldFault(f"{path} has rules for a workspace of its own, in brackets. All its rules are for this one.")
    return rules.get(EVERYWHERE, ())
