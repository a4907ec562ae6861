"""`auto`: decide for each question how much effort it is worth, then use the other methods' phases.

`measured` decides by the last evaluation of the knowledge base, else `decisions` by the model or by rules.
What the question or its pipeline says about `top_k`, `rerank`, `hybrid` and `parent_context` takes
precedence.
"""

from __future__ import annotations

from collections.abc import Mapping

from builtin_plugins.rag.methods.decisions import Decision, decide
from builtin_plugins.rag.methods.hyde import Hyde
from builtin_plugins.rag.methods.measured import apply, measured
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.methods.self_rag import SelfRag
from builtin_plugins.rag.questions.model import NO_RUNTIME
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from kernel.sdk import contracts


class Auto(Method):
    """Applies the number of passages, reranking, hyde and self_rag of a decision; its strategy is only
    advice.

    A measured configuration is applied as a whole, including its method.
    """

    name = "auto"

    def __init__(self, hyde: Hyde, self_rag: SelfRag, methods: Mapping[str, Method]) -> None:
        self._hyde = hyde
        self._self_rag = self_rag
        self._methods = methods

    async def plan(self, question: Question) -> contracts.SearchPlan:
        """Decide, and plan as decided."""
        with question.trace.step("decide", "Deciding how to answer"):
            choice = await measured(question)
            if choice is not None and choice.configuration.method in self._methods:
                details = question.trace.details
                details["requested"] = self.name
                details["decision"] = {"measured": dict(choice.evidence), "applied": apply(question, choice)}
                return await self._of(question).plan(question)
            decision = await decide(question)
        runtime = await question.model.installed()
        if not runtime:
            question.trace.degrade(f"auto: {NO_RUNTIME}, decided by rules")
        applied = self._apply(question, decision, runtime=runtime)
        details = question.trace.details
        details["requested"] = self.name
        details["decision"] = {**decision.model_dump(exclude={"confidence"}), "applied": applied}
        self._advise(question, decision)
        if applied["hyde"]:
            return await self._hyde.plan(question)
        return await super().plan(question)

    async def retrieve(self, question: Question, plan: contracts.SearchPlan) -> Retrieved:
        """Retrieve as the measured method does."""
        return await self._of(question).retrieve(question, plan)

    async def check(
        self, question: Question, plan: contracts.SearchPlan, found: Retrieved
    ) -> Retrieved | Draft:
        """Judge the answer if the decision says so."""
        if question.trace.details["decision"]["applied"].get("self_rag"):
            return await self._self_rag.check(question, plan, found)
        return await self._of(question).check(question, plan, found)

    def _of(self, question: Question) -> Method:
        """The method chosen by measurement, else `standard`."""
        return self._methods[question.trace.details["decision"]["applied"].get("method", "standard")]

    def _apply(self, question: Question, decision: Decision, *, runtime: bool) -> dict[str, object]:
        request = question.request
        said = "top_k" in request.model_fields_set
        top_k = request.top_k if said else decision.top_k
        rerank = request.rerank or decision.use_reranking
        question.request = request.model_copy(update={"top_k": top_k, "rerank": rerank})
        return {
            "hyde": decision.use_hyde and runtime,
            "self_rag": decision.use_self_rag and runtime,
            "top_k": top_k,
            "rerank": rerank,
        }

    def _advise(self, question: Question, decision: Decision) -> None:
        """Note that a strategy was not followed; `hybrid` is, if the question is hybrid anyway."""
        strategy = decision.retrieval_strategy
        if strategy != "basic" and not (strategy == "hybrid" and question.hybrid):
            question.trace.degrade(f"auto: the strategy '{strategy}' is advice, and was not followed")
