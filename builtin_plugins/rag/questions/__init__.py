"""The path of a question, the same for every method.

`asking` (who may ask what) → `running` (plan → retrieve → check, by a method) → `finding` (search → enhance →
rerank → cut → widen) → `writing` (the answer, by a model or from the passages' sentences) → `rendering`.
Modules only import to the right; what they share about one question is in a `Question`.
"""
