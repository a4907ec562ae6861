"""Containers of Docker or Podman, by the engine's HTTP API."""
