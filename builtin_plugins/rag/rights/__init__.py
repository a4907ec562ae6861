"""Rights that documents have besides their knowledge base's: who may read them, and how that is stored.

`reading` is the condition that every query over documents for a caller has; `audiences` changes who is meant,
`explaining` says who it is, and `hooks` are how other plugins ask for that.
"""
