"""Folders with tiny models of random weights, made on the spot, for the published library to read."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = (
    "hotel",
    "night",
    "costs",
    "pump",
    "oiled",
    "station",
    "breakfast",
    "paid",
    "who",
    "what",
    "the",
    "a",
)


def _bert(folder: Path, *, scores: bool) -> None:
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

    folder.mkdir(parents=True)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *letters,
        *(f"##{one}" for one in letters),
    ]
    pieces += list("0123456789.,?!:")
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    words = BertWordPieceTokenizer(vocab={piece: at for at, piece in enumerate(pieces)})
    PreTrainedTokenizerFast(
        tokenizer_object=words._tokenizer,
        model_max_length=64,
        **{f"{name}_token": token for name, token in special.items()},
    ).save_pretrained(folder)
    torch.manual_seed(7)
    shape = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
    )
    model = BertForSequenceClassification(shape) if scores else BertModel(shape)
    model.save_pretrained(folder, safe_serialization=True)


def sentence_transformer(folder: Path, *, prompts: dict[str, str] | None = None) -> Path:
    """A folder in sentence-transformers' format: 16 numbers, at most 64 tokens."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    bert = folder.with_name(f"{folder.name}-bert")
    _bert(bert, scores=False)
    words = Transformer(str(bert), max_seq_length=64)
    SentenceTransformer(modules=[words, Pooling(16)], prompts=prompts, device="cpu").save(str(folder))
    return folder


def cross_encoder(folder: Path) -> Path:
    """A folder of a cross-encoder with one score."""
    _bert(folder, scores=True)
    return folder


def declared(**models: dict[str, object]) -> str:
    """The value of `PLATFORM_EMBEDDINGS_MODELS`."""
    return json.dumps({name.replace("_", "-"): one for name, one in models.items()}, default=str)
