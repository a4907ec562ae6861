"""The plugin registry: what is installed, what it can do, and how it is configured. See README.md."""
