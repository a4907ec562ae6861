"""The name of the distribution, and the version of the plugin API."""

# Raised in its first part when a plugin has to change.
API_VERSION = "1.0"

DISTRIBUTION = "platform-kernel"
