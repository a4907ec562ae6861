"""Questions about the documents themselves: what is recognized as one."""

from __future__ import annotations

import pytest

from builtin_plugins.extractive_answers.overview_questions import OverviewKind, overview_question

ASKED: list[tuple[OverviewKind, list[str]]] = [
    (
        "count",
        [
            *(
                "How many documents do I have?",
                "how many files are in this knowledge base",
                "Number of documents",
            ),
            *(
                "Wie viele Dokumente habe ich?",
                "Wieviele Dateien gibt es hier?",
                "Combien de documents ai-je ?",
            ),
            *("¿Cuántos documentos tengo?", "Quanti documenti ci sono qui?", "Hoeveel bestanden heb ik?"),
            *("Quantos documentos tenho?", "Сколько у меня документов?", "Kaç belgem var?", "我有多少文档？"),
        ],
    ),
    (
        "contents",
        [
            *(
                "What is in here?",
                "Please list all my documents.",
                "What can I ask about?",
                "Was ist hier drin?",
            ),
            *("Welche Dokumente haben wir?", "Qu'y a-t-il ici ?", "¿Qué hay aquí?", "Che cosa c'è qui?"),
            *("Welke documenten zijn er?", "O que há aqui?", "Какие здесь есть документы?", "这里有什么？"),
        ],
    ),
    (
        "changes",
        [
            *(
                "What changed?",
                "What's new?",
                "Which documents have been added recently?",
                "Was hat sich geändert?",
            ),
            *("Quoi de neuf ?", "¿Qué ha cambiado?", "Cosa è cambiato?", "Wat is er nieuw?", "O que mudou?"),
            *("Что изменилось?", "Neler değişti?", "最近有什么变化？"),
        ],
    ),
]


@pytest.mark.parametrize("kind", [kind for kind, _ in ASKED])
def test_it_is_recognized_in_ten_languages(kind: OverviewKind) -> None:
    questions = next(questions for one, questions in ASKED if one == kind)
    kinds = {question: (made := overview_question(question)) and made.kind for question in questions}
    assert kinds == dict.fromkeys(questions, kind)


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Summarize the travel policy", "travel policy"),
        ("Give me a short summary of handbook.md, please", "handbook.md"),
        ("Fasse das Handbuch zusammen", "handbuch"),
        ("Worum geht es im Mietvertrag?", "mietvertrag"),
        ("Résume le contrat", "contrat"),
        ("总结一下员工手册", "员工手册"),
    ],
)
def test_a_summary_names_its_document(question: str, subject: str) -> None:
    made = overview_question(question)
    assert made is not None and (made.kind, made.subject) == ("summary", subject)


@pytest.mark.parametrize(
    "question",
    [
        *(
            "How many documents does a visa need?",
            "How many documents must I sign?",
            "What is new in version 3?",
        ),
        *("What changed in the hotel limit?", "Which policy is in force?", "What is the total?", "", "?"),
        *("Wie viele Dokumente braucht man für den Antrag?", "Combien de documents faut-il pour un visa ?"),
        "How many documents do I have? " * 20,
    ],
)
def test_any_other_question_is_not(question: str) -> None:
    assert overview_question(question) is None
