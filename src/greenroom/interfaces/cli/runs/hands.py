"""The hands of teams at this door. Loaded by name: the tools take their time, and most commands need none."""

from __future__ import annotations

import os
from pathlib import Path

from greenroom.app.hands.hands import FindEnded, Hands, policy_for, toolbox_of
from greenroom.app.hands.rules_file import NAME, RulesFile
from greenroom.app.settings.layers import user_file

__all__ = ("hands_in", "rules_file", "toolbox_of")


def rules_file() -> RulesFile:
    """The person's own rules, beside their settings."""
    return RulesFile(user_file(os.environ).parent / NAME)


def hands_in(root: Path, find: FindEnded) -> Hands:
    """The tools of a workspace, under what the person has agreed to there."""
    return Hands(root, policy_for(root, rules_file().of(root)), find=find)
