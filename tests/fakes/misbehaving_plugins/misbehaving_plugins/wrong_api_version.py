"""Is written for a plugin API of the future."""

from kernel.sdk import Plugin


class Future(Plugin):
    name = "wrong_api_version"
    api_version = "99.0"
