"""Asking plugins to collect and to analyse, and whether they are well."""
