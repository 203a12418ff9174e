"""`groupwright watch`: one group, live.

- `watched_group`: snapshots in, events and views out; `progress`, `ownership` and `names` are its parts.
- `events`: the events; `sentences` says each in words.
- `view`: the group on a terminal. `reporters` and `document`: lines, JSON and CSV.
- `run`: the loop. `command`: the options.
"""
