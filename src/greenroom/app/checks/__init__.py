"""Checks in the house: which ones count, how they are run, and what their receipts prove."""
