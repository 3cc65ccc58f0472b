"""Checks of strict providers: calls without results, results without calls, messages between the two."""

from __future__ import annotations

from collections.abc import Mapping


def broken(body: Mapping[str, object]) -> str:
    """Return what is wrong with the conversation of a request in OpenAI's wording, or ""."""
    messages = body.get("messages")
    owed: list[str] = []
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, dict):
            return f"Invalid type for 'messages[{place}]': expected an object."
        if message.get("role") != "tool":
            if owed:
                return _unanswered(owed)
            owed = _asked(message)
            continue
        name = message.get("tool_call_id")
        if name not in owed:
            return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        owed.remove(str(name))
    return _unanswered(owed) if owed else ""


def _asked(message: Mapping[str, object]) -> list[str]:
    calls = message.get("tool_calls")
    return [str(one.get("id")) for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []


def _unanswered(owed: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(owed)}"
    )
