"""The sentence that says that the documents contradict each other, in the question's language."""

from __future__ import annotations

from typing import Final

_DIFFERENCES: Final = {
    "ar": "تختلف المستندات في ذلك.",
    "cs": "Dokumenty se v tom liší.",
    "da": "Dokumenterne siger noget forskelligt.",
    "de": "Die Dokumente widersprechen sich.",
    "el": "Τα έγγραφα διαφέρουν σε αυτό.",
    "es": "Los documentos no coinciden.",
    "fi": "Asiakirjat ovat ristiriidassa.",
    "fr": "Les documents se contredisent.",
    "hi": "दस्तावेज़ों में अलग-अलग बातें हैं।",
    "hu": "A dokumentumok ellentmondanak egymásnak.",
    "id": "Dokumen-dokumen berbeda dalam hal ini.",
    "it": "I documenti si contraddicono.",
    "ja": "文書によって内容が異なります。",
    "ko": "문서마다 내용이 다릅니다.",
    "nl": "De documenten spreken elkaar tegen.",
    "no": "Dokumentene sier noe ulikt.",
    "pl": "Dokumenty są ze sobą sprzeczne.",
    "pt": "Os documentos não coincidem.",
    "ro": "Documentele se contrazic.",
    "ru": "Документы противоречат друг другу.",
    "sv": "Dokumenten säger olika saker.",
    "th": "เอกสารระบุไว้ไม่ตรงกัน",
    "tr": "Belgeler birbiriyle çelişiyor.",
    "uk": "Документи суперечать один одному.",
    "vi": "Các tài liệu nói khác nhau về điều này.",
    "zh": "文档之间说法不一。",
}


def difference_in(language: str | None) -> str:
    """What is said of documents that contradict each other, by ISO 639 code; in English if not in that."""
    return _DIFFERENCES.get(language or "", "The documents differ.")
