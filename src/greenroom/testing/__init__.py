"""Public helpers for testing teams: a scripted model, a harness, small example tools, conformance suites."""

from greenroom.testing.scripted import ScriptedCall, ScriptedModel, ScriptedReply, forbid_requests, use_models

__all__ = ["ScriptedCall", "ScriptedModel", "ScriptedReply", "forbid_requests", "use_models"]
