"""Permission, decided in code: rules that people can read, and one answer for each call.

    policy = rules_policy({"user": ["allow command npm test"]}, "/home/me/project")
    policy.decide(agent, card, targets, grants)     allow | notify | ask | deny, with the rule, the reason, a proposal

It reads no file and runs nothing; what a model says about a call counts for nothing. Which rule holds: `rulebook`. What
rules look like: `rules`. What is silent without any: `judgement`. How command lines
are read: `command_line`.
"""

from greenroom.policy.policy import RulesPolicy, rules_policy
from greenroom.policy.rulebook import Layer
from greenroom.policy.rules import BadRule, Rule, parse, parse_all

__all__ = [
    "BadRule",
    "Layer",
    "Rule",
    "RulesPolicy",
    "parse",
    "parse_all",
    "rules_policy",
]
