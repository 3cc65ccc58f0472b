"""The organisation: people, managers and agents that plan, in one team that stays. No door: those are above."""
