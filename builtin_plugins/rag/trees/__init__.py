"""Trees of summaries over a document's passages, for the method `raptor`.

`clusters` groups similar texts, `summaries` summarizes a group, `building` makes one document's tree out of
both, and `job` does so for many documents.
"""
