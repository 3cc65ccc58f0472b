"""The sandbox for commands: tiers, trials, protection of files and limits.

This package describes the confinement as data. `adapters/processes/confinement.py` applies it, between fork and exec.
"""
