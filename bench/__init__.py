"""Measurements: one file per NAME with `run()` and `GOALS`, started by `./go bench NAME`.

`run()`, plain or async, returns figures by name. `GOALS` gives some of them a limit:
`{"cpu_ms_per_step": ("<=", 0.15)}`.
"""
