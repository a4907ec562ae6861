"""The Platform kernel: plugins, routes, identity, storage, jobs. It knows no capability."""

__version__ = "0.1.0"
