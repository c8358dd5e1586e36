"""The TOML file that names a task and its contenders, read and checked before anything runs."""
