"""`platformctl rag`: what changed in documents, and proofs of deletions, directly from the stored data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from builtin_plugins.rag.commands.contradictions import contradictions
from builtin_plugins.rag.commands.differences import diff
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.rag.schemas_receipts import Receipt
    from builtin_plugins.rag.services.verification import CheckedPlace

app = App(
    no_args_is_help=True,
    help="Documents: show what changed in them, prove that they were deleted.",
    epilog=examples(
        ("platformctl rag diff policies/travel.md --kb Handbook", "what changed in it"),
        ("platformctl rag verify-deleted receipt.json", "check that nothing of it is left"),
    ),
)
app.command(
    name="diff",
    epilog=examples(
        ("platformctl rag diff policies/travel.md --kb Handbook", "since the version before"),
        ("platformctl rag diff policies/travel.md --kb Handbook --from 2 --to 5", ""),
    ),
)(diff)
app.command(
    name="contradictions",
    epilog=examples(
        ("platformctl rag contradictions --kb Handbook", "what was found last"),
        ("platformctl rag contradictions --kb Handbook --compare", "compare them now"),
        ("platformctl rag contradictions --kb Handbook --compare --model-calls 50", ""),
    ),
)(contradictions)


@app.command(
    name="verify-deleted",
    epilog=examples(
        ("platformctl rag verify-deleted receipt.json", "the answer of a DELETE, or its receipt"),
        ("platformctl rag verify-deleted - < receipt.json", "from standard input"),
    ),
)
def verify_deleted(
    file: Annotated[Path, typer.Argument(help="The receipt; '-' reads standard input.", metavar="RECEIPT")],
    as_json: AsJson = False,
) -> None:
    """Check a receipt's signature, and search everywhere for what it says was deleted.

    The exit code is 1 if the receipt is not genuine or something is left.
    """
    from cli import console, running
    from cli.failures import CommandFailed

    receipt = _read(file)
    genuine, places = running.run(_look(receipt))
    left = [place for place in places if place.left]
    if as_json:
        answer = {"genuine": genuine, "left": {place.place: place.left for place in places}}
        console.print_json(answer)
    else:
        rows = [(place.place.replace("_", " "), str(place.left)) for place in places]
        console.print_table(("place", "left"), rows, "")
    if not genuine:
        raise CommandFailed(
            "the signature does not match: the receipt was changed, or signed with another key",
            "The key is the file 'deletion-receipts' in PLATFORM_HOME/secrets.",
        )
    if left:
        raise CommandFailed(
            "some of the deleted data is still there",
            "Removal may still be under way: 'platformctl jobs list' shows it.",
        )
    if not as_json:
        console.done(f"Nothing is left of what was deleted on {receipt.deleted_at:%Y-%m-%d %H:%M} UTC")


def _read(file: Path) -> Receipt:
    from pydantic import ValidationError

    from builtin_plugins.rag.schemas_receipts import Receipt
    from cli.failures import CommandFailed

    text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    try:
        data = json.loads(text)
        return Receipt.model_validate(data.get("receipt", data) if isinstance(data, dict) else data)
    except (ValueError, ValidationError):
        raise CommandFailed(
            f"{file} holds no receipt", "Save the whole answer of the DELETE, or its field 'receipt'."
        ) from None


async def _look(receipt: Receipt) -> tuple[bool, list[CheckedPlace]]:
    from builtin_plugins.rag.services.receipts import known_signer
    from builtin_plugins.rag.services.verification import look_again
    from cli import running
    from cli.failures import CommandFailed

    async with running.stored_platform() as platform:
        signer = known_signer(platform.secrets)
        if signer is None:
            raise CommandFailed(
                "the key that signed the receipt is missing, so it can't be checked whether it is genuine",
                "Put the file 'deletion-receipts' back into PLATFORM_HOME/secrets, such as from a backup.",
            )
        return signer.signed(receipt), await look_again(platform, receipt)
