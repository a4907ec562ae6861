"""The way of a question, one way for every method.

`asking` (who may ask what) → `running` (plan → retrieve → check, by a method) → `finding` (search → enhance →
rerank → cut → widen) → `writing` (the answer, by a model or from the passages' sentences) → `rendering`.
Arrows only point forwards; what all of them share about one question is a `Question`.
"""
