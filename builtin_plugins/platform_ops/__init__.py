"""The service `platform-ops`: what operators do with a running platform."""
