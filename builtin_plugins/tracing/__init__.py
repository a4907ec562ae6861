"""Traces of requests, jobs and calls, sent to an OpenTelemetry collector."""
