"""A tool as a file: it belongs into .greenroom/tools/ of a project, or into ~/.config/greenroom/tools/."""

from typing import Literal

from greenroom import ModelFault, tool

FACTORS = {"km": ("miles", 0.621371), "kg": ("pounds", 2.204623), "l": ("gallons", 0.264172)}


@tool(effect="pure")
def convert(value: float, unit: Literal["km", "kg", "l"]) -> str:
    """Convert a metric value into American units. Example: convert(value=21, unit="km")"""
    if value < 0:
        raise ModelFault("A value is 0 or more. Give the absolute value.")
    name, factor = FACTORS[unit]
    return f"{value:g} {unit} are {value * factor:.2f} {name}"
