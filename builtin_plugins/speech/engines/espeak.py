"""espeak-ng, run as a separate program: every language of the service, and phonemes for other engines."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from builtin_plugins.speech.engines.protocol import Sound, Voice
from builtin_plugins.speech.errors import CannotSpeak
from builtin_plugins.speech.languages import NAMES
from kernel.sdk import ChildFailed, ChildLimits, Children, MachineFault
from kernel.sdk.operations import Reach

PROGRAM: Final = "espeak-ng"
REMEDY: Final = "install the program espeak-ng (Debian: apt install espeak-ng)"
_WORDS_A_MINUTE, _SLOW_WORDS_A_MINUTE = 165, 110
# A sentence of 5,000 characters is six minutes of sound. The program writes no file, but its sound library
# allocates one in memory.
_LIMITS: Final = ChildLimits(
    memory_mb=512,
    cpu_seconds=20,
    wall_seconds=30,
    file_bytes=128 * 1024 * 1024,
    output_bytes=64 * 1024 * 1024,
)
_IDENTIFIERS: Final = {"fr": "fr-fr", "en": "en-us"}
_VARIANTS: Final = {"female": "+f3", "male": "+m3"}


class Espeak:
    """Speaks by running the program once for each sentence."""

    name = "espeak-ng"

    def __init__(self, children: Children) -> None:
        self._children = children

    async def missing(self) -> str | None:
        """Report the program if it is missing."""
        return None if shutil.which(PROGRAM) else REMEDY

    def voices(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Three voices for English; the other languages have one each, named only for Turkish."""
        default = Voice("default", "Default")
        english = [default, Voice("female", "Female"), Voice("male", "Male")]
        return {code: {"en": english, "tr": [default]}.get(code, []) for code in NAMES}

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        """A sentence as sound. The text is sent to standard input: nothing in it is an option or markup."""
        name = _IDENTIFIERS.get(language, language) + _VARIANTS.get(voice or "", "")
        speed = _SLOW_WORDS_A_MINUTE if slow else _WORDS_A_MINUTE
        return _read_wav(await self._run(["-v", name, "-s", str(speed), "--stdout"], text))

    async def phonemes(self, text: str, voice: str) -> list[str]:
        """The text in IPA, clause by clause."""
        output = await self._run(["-v", voice, "--ipa", "-q"], text)
        return [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]

    async def _run(self, options: Sequence[str], text: str) -> bytes:
        try:
            return await self._children.run(
                [shutil.which(PROGRAM) or PROGRAM, "-b", "1", *options, "--stdin"],
                limits=_LIMITS,
                source=text.encode(errors="replace"),
                reach=Reach(),
            )
        except ChildFailed as error:
            remedy = REMEDY if error.reason == "unavailable" else "the program espeak-ng failed; try again"
            raise CannotSpeak(f"The text can't be spoken: {remedy}") from error
        except MachineFault as error:
            raise CannotSpeak(
                "The text can't be spoken now: espeak-ng was killed, or the machine is short of memory; "
                "try later"
            ) from error


def _read_wav(audio: bytes) -> Sound:
    """The samples in the program's output, after a canonical 44-byte header with meaningless lengths."""
    if len(audio) < 44 or audio[:4] != b"RIFF":
        raise CannotSpeak("The text can't be spoken: espeak-ng produced no sound")
    (rate,) = struct.unpack_from("<I", audio, 24)
    return Sound(audio[44 : len(audio) - len(audio) % 2], rate)
