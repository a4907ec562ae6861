"""Trees of summaries over a document's passages, for the method `raptor`.

`clusters` says what belongs together, `summaries` says it shorter, `building` makes one document's tree out
of both, `job` does so for many documents.
"""
