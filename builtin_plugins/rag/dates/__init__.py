"""Dates in texts and questions: when a document applies, and what period a question is about."""
