"""The languages of the service (wire-facts 13)."""

from __future__ import annotations

from typing import Final

NAMES: Final[dict[str, str]] = {
    "tr": "Turkish",
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "ru": "Russian",
    "ja": "Japanese",
    "ko": "Korean",
}
REGIONS: Final[dict[str, str]] = {
    "tr-TR": "Turkish (Türkiye)",
    "en-US": "English (United States)",
    "de-DE": "German (Germany)",
    "fr-FR": "French (France)",
    "es-ES": "Spanish (Spain)",
    "it-IT": "Italian (Italy)",
    "pt-PT": "Portuguese (Portugal)",
    "nl-NL": "Dutch (Netherlands)",
    "ru-RU": "Russian (Russia)",
    "ja-JP": "Japanese (Japan)",
    "ko-KR": "Korean (South Korea)",
}


def base_of(region: str) -> str:
    """The language of a regional code: ``en`` of ``en-US``."""
    return region.partition("-")[0]
