"""Permissions at sources.

`directory` keeps the people and groups there, and which accounts they are here; `granting` who may read which
item; `refreshing` reads both, in runs and between them; `counterparts` and `explaining` are what routes show.
"""
