"""Evaluation of knowledge bases by questions with known answers."""
