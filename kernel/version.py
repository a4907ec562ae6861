"""The version of the plugin API: raised in its first part when a plugin has to change."""

API_VERSION = "1.0"
