"""Many models checked at once: a TOML file of models, targets, references and budgets, run in processes of their own.

`settings` reads the file, `work` does what an entry asks for, `pool` and `cluster` run the entries, `junit` writes what
came of them for servers of continuous integration. `plugin` is what pytest loads.
"""
