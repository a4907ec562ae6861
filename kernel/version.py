"""The name of the distribution, and the version of the plugin API."""

# The first part is raised if plugins have to change.
API_VERSION = "1.0"

DISTRIBUTION = "platform-kernel"
