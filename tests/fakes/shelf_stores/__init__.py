"""A plugin by somebody else that brings stores: it knows `kernel.sdk` alone."""
