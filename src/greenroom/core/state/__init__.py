"""The state: one file per noun (record, events, transitions), `TeamState`, and the reducer."""
