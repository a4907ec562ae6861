"""Answers from passages: whether they support a question, quoted and generated answers, citations."""
