"""Waiting for what another process does, where there is no event to await."""

from kernel.testing import eventually as eventually
