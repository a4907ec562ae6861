"""The Platform kernel: plugins, routes, identity, storage, jobs. All capabilities are plugins."""

__version__ = "0.1.0"
