"""The command line: one module per command; see `cli.main`."""
