"""One file per skill: what is asked for, and what follows from the answer."""
