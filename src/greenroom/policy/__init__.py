"""Permission, decided in code: rules that people can read, and one decision per call.

    policy = build_rules_policy({"user": ["allow command npm test"]}, "/home/me/project")
    policy.decide(agent, card, targets, grants)     allow | notify | ask | deny, with the rule, the reason, a proposal

It reads no file and runs nothing, and it ignores what a model says about a call. `rulebook` says which rule decides,
`rules` how rules are written, `decision` what is decided without a rule, and `command_line` how command lines
are parsed.
"""
