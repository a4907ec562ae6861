"""What an answer says first if it comes from documents of another time than was asked for."""

from __future__ import annotations

from typing import Final

_OTHER_TIME: Final = {
    "ar": "لا يجيب عن ذلك أي مستند من تلك الفترة؛ هذا من مستندات أخرى.",
    "de": "Kein Dokument aus dieser Zeit beantwortet das; dies steht in anderen Dokumenten.",
    "es": "Ningún documento de esa época responde a esto; esto procede de otros documentos.",
    "fr": "Aucun document de cette période n’y répond ; ceci vient d’autres documents.",
    "hi": "उस अवधि का कोई दस्तावेज़ इसका उत्तर नहीं देता; यह दूसरे दस्तावेज़ों से है।",
    "ru": "Ни один документ за это время не отвечает на вопрос; это из других документов.",
    "th": "ไม่มีเอกสารในช่วงเวลานั้นที่ตอบเรื่องนี้ ข้อมูลนี้มาจากเอกสารอื่น",
    "tr": "O döneme ait hiçbir belge bunu yanıtlamıyor; bu bilgi başka belgelerden.",
    "vi": "Không có tài liệu nào của thời gian đó trả lời câu này; đây là từ tài liệu khác.",
    "zh": "该时期没有文档回答此问题；以下内容来自其他文档。",
}
_NOT_CURRENT: Final = {
    "ar": "لا يجيب عن ذلك أي مستند ساري اليوم؛ هذا من مستندات لم تعد سارية أو لم تسرِ بعد.",
    "de": "Kein Dokument, das heute gilt, beantwortet das; dies galt früher oder gilt erst später.",
    "es": "Ningún documento vigente responde a esto; esto ya no se aplica o aún no se aplica.",
    "fr": "Aucun document en vigueur n’y répond ; ceci ne s’applique plus ou pas encore.",
    "hi": "आज लागू कोई दस्तावेज़ इसका उत्तर नहीं देता; यह अब लागू नहीं है या अभी लागू नहीं हुआ।",
    "ru": "Ни один действующий документ не отвечает на вопрос; это уже или ещё не действует.",
    "th": "ไม่มีเอกสารที่มีผลในวันนี้ที่ตอบเรื่องนี้ ข้อมูลนี้ไม่มีผลแล้วหรือยังไม่มีผล",
    "tr": "Bugün geçerli hiçbir belge bunu yanıtlamıyor; bu artık geçerli değil veya henüz geçerli değil.",
    "vi": "Không có tài liệu nào đang có hiệu lực trả lời câu này; điều này đã hết hoặc chưa có hiệu lực.",
    "zh": "没有现行有效的文档回答此问题；以下内容已失效或尚未生效。",
}


def period_note(language: str | None, *, named: bool) -> str:
    """The sentence, by ISO 639 code; `named`: the question named a time, else what applies today is meant."""
    if named:
        return _OTHER_TIME.get(
            language or "", "No document of that time answers this; this is from other documents."
        )
    return _NOT_CURRENT.get(
        language or "", "No document that applies today answers this; this no longer or does not yet apply."
    )
