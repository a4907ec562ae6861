"""Answers from passages: whether they support an answer, quoted and generated answers, citations."""
