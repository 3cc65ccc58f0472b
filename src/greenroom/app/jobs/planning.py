"""Which checks count in a workspace, by what its people have and what the person said."""

from __future__ import annotations

import os
from pathlib import Path

from greenroom.abilities.checks.finding.found import found
from greenroom.app.checks.choices import own_choices
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.planning import Plan, planned, proposed, together
from greenroom.app.settings.layers import load
from greenroom.app.trust.ledger import own_ledger


def plan_of(root: Path, *, walls: bool) -> Plan:
    """The plan; `walls` say that commands run behind some that hold."""
    loaded = load({}, os.environ, root)
    every = together(proposed(loaded.settings.checks, loaded), found(FolderLook(root)))
    return planned(every, own_choices().of(root), own_ledger().trusted(root), walls=walls)
