"""Trust: what a workspace brings with it that could act, and whether a person has agreed to exactly that."""
