"""Engines that speak and engines that transcribe."""
