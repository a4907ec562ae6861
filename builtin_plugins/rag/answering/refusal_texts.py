"""The sentences that say that the documents contain no answer, in the question's language."""

from __future__ import annotations

from typing import Final

NOT_SUPPORTED: Final = "The documents do not contain an answer to this question."

_REFUSALS: Final = {
    "ar": "لا تحتوي المستندات على إجابة لهذا السؤال.",
    "cs": "Dokumenty neobsahují odpověď na tuto otázku.",
    "da": "Dokumenterne indeholder ikke et svar på dette spørgsmål.",
    "de": "Die Dokumente enthalten keine Antwort auf diese Frage.",
    "el": "Τα έγγραφα δεν περιέχουν απάντηση σε αυτή την ερώτηση.",
    "es": "Los documentos no contienen una respuesta a esta pregunta.",
    "fi": "Asiakirjat eivät sisällä vastausta tähän kysymykseen.",
    "fr": "Les documents ne contiennent pas de réponse à cette question.",
    "hi": "दस्तावेज़ों में इस प्रश्न का उत्तर नहीं है।",
    "hu": "A dokumentumok nem tartalmaznak választ erre a kérdésre.",
    "id": "Dokumen tidak memuat jawaban atas pertanyaan ini.",
    "it": "I documenti non contengono una risposta a questa domanda.",
    "ja": "文書にはこの質問への回答が含まれていません。",
    "ko": "문서에는 이 질문에 대한 답이 없습니다.",
    "nl": "De documenten bevatten geen antwoord op deze vraag.",
    "no": "Dokumentene inneholder ikke et svar på dette spørsmålet.",
    "pl": "Dokumenty nie zawierają odpowiedzi na to pytanie.",
    "pt": "Os documentos não contêm uma resposta a esta pergunta.",
    "ro": "Documentele nu conțin un răspuns la această întrebare.",
    "ru": "В документах нет ответа на этот вопрос.",
    "sv": "Dokumenten innehåller inget svar på den här frågan.",
    "th": "เอกสารไม่มีคำตอบสำหรับคำถามนี้",
    "tr": "Belgeler bu soruya bir yanıt içermiyor.",
    "uk": "У документах немає відповіді на це запитання.",
    "vi": "Các tài liệu không có câu trả lời cho câu hỏi này.",
    "zh": "文档中没有这个问题的答案。",
}
SPOKEN: Final = frozenset({"en", *_REFUSALS})
"""The languages of refusals, by ISO 639 code."""

REFUSALS: Final = (NOT_SUPPORTED, *_REFUSALS.values())


def refusal_in(language: str | None) -> str:
    """The refusal in a language, by ISO 639 code; in English if there is none."""
    return _REFUSALS.get(language or "", NOT_SUPPORTED)


_UNKNOWN_NAME: Final = {
    "de": "„{name}“ kommt darin nicht vor.",
    "es": "«{name}» no aparece en ellos.",
    "fr": "« {name} » n’y figure pas.",
    "it": "«{name}» non vi compare.",
    "nl": "‘{name}’ komt er niet in voor.",
    "pt": "“{name}” não aparece neles.",
    "ru": "«{name}» в них не встречается.",
    "tr": "“{name}” bu belgelerde geçmiyor.",
}


def name_refusal_in(language: str | None, name: str) -> str:
    """The refusal in a language, and that no document has the name."""
    reason = _UNKNOWN_NAME.get(language or "", "“{name}” does not occur in them.")
    return f"{refusal_in(language)} {reason.format(name=name)}"
