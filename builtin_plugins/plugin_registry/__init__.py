"""The plugin registry: what is installed, what it can do, and how it is set up. See README.md."""
