"""`auto`: decide for each question how much effort it is worth, then use the other methods' phases.

The last evaluation of the knowledge base decides, else the model or a rule (`decisions`). What the question
or its pipeline says about `top_k`, `rerank`, `hybrid` and `parent_context` takes precedence.

A measured configuration is applied as a whole, including its method, which may be another plugin's. Of a
decision, the number of passages, reranking, hyde and self_rag are applied; its strategy is only advice.
"""

from __future__ import annotations

from dataclasses import asdict

from builtin_plugins.rag.api import (
    NO_RUNTIME,
    Draft,
    MeasuredChoice,
    MethodPhases,
    QueryMethod,
    QuestionWork,
    RetrievedPassages,
)
from builtin_plugins.rag_methods.decisions import RetrievalDecision, decide

_STANDARD = "standard"
_FIELDS = ("hybrid", "parent_context", "rerank", "top_k")


async def find(work: QuestionWork) -> RetrievedPassages:
    """Decide, then plan and retrieve as decided."""
    with work.step("decide", "Deciding how to answer"):
        choice = await work.measured()
        if choice is not None and _is_known(work, choice):
            applied = _apply_measured(work, choice)
            _report(work, {"measured": dict(choice.evidence), "applied": applied})
        else:
            applied = await _apply_decision(work, await decide(work))
    planning = _phases(work, "hyde" if applied.get("hyde") else None)
    return await _phases(work).retrieve(await planning.plan())


async def check(work: QuestionWork, retrieved: RetrievedPassages) -> RetrievedPassages | Draft:
    """Judge the answer if the decision says so; else check as the measured method does."""
    applied = work.details["decision"]["applied"]
    return await _phases(work, "self_rag" if applied.get("self_rag") else None).check(retrieved)


def _phases(work: QuestionWork, name: str | None = None) -> MethodPhases:
    """The method of this name, else the measured one, else `standard`."""
    method = name or work.details["decision"]["applied"].get("method", _STANDARD)
    phases = work.by(method) or work.by(_STANDARD)
    assert phases is not None
    return phases


def _is_known(work: QuestionWork, choice: MeasuredChoice) -> bool:
    return choice.configuration.method != AUTO.name and work.by(choice.configuration.method) is not None


def _apply_measured(work: QuestionWork, choice: MeasuredChoice) -> dict[str, object]:
    """Apply what was measured, except where the question or its pipeline decides; returns what is done."""
    chosen, explicit = asdict(choice.configuration), work.chosen_options
    done = asdict(work.choose(**{name: chosen[name] for name in _FIELDS if name not in explicit}))
    return {"method": chosen["method"], **{name: done[name] for name in _FIELDS}}


async def _apply_decision(work: QuestionWork, decision: RetrievalDecision) -> dict[str, object]:
    runtime = await work.has_model()
    if not runtime:
        work.degrade(f"{NO_RUNTIME}, decided by rules")
    top_k = work.top_k if "top_k" in work.chosen_options else decision.top_k
    rerank = work.options.rerank or decision.use_reranking
    done = work.choose(top_k=top_k, rerank=rerank)
    applied: dict[str, object] = {
        "hyde": decision.use_hyde and runtime,
        "self_rag": decision.use_self_rag and runtime,
        "top_k": top_k,
        "rerank": done.rerank,
    }
    _report(work, {**decision.model_dump(exclude={"confidence"}), "applied": applied})
    _advise(work, decision)
    return applied


def _report(work: QuestionWork, decision: dict[str, object]) -> None:
    work.details |= {"requested": AUTO.name, "decision": decision}


def _advise(work: QuestionWork, decision: RetrievalDecision) -> None:
    """Note that a strategy was not followed; `hybrid` is, if the question is hybrid anyway."""
    strategy = decision.retrieval_strategy
    if strategy != "basic" and not (strategy == "hybrid" and work.options.hybrid):
        work.degrade(f"the strategy '{strategy}' is advice, and was not followed")


AUTO = QueryMethod("auto", "Decides for each question how much effort it is worth.", find, check=check)
