"""The path of a question, the same for every method.

`asking` (who may ask what; plan → retrieve → check) → `methods` (whose phases these are) → `finding`
(search → enhance → rerank → cut → widen) → `writing` (the answer, by a model or from the passages'
sentences).
Modules only import to the right; what they share about one question is in a `Question`.
"""
