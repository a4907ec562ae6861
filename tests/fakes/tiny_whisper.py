"""A Whisper model of random numbers, as a folder that faster-whisper reads: it hears nothing that was said.

It needs the packages of `tests/clients/whisper.txt`, and torch and transformers.
"""

from __future__ import annotations

from pathlib import Path

_WORDS = 100
_LANGUAGES = ("en", "tr", "de")
_SPECIAL = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{language}|>" for language in _LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
    *(f"<|{number * 0.02:.2f}|>" for number in range(1501)),
)


def make_tiny_whisper(folder: Path) -> Path:
    """The folder of the model, made below `folder`."""
    import torch
    from ctranslate2.converters import TransformersConverter
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, WhisperConfig, WhisperForConditionalGeneration

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [f"word{number}" for number in range(_WORDS)]
    vocabulary = {token: number for number, token in enumerate([*letters, *words])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    end, begin = tokenizer.token_to_id("<|endoftext|>"), tokenizer.token_to_id("<|startoftranscript|>")
    source = folder / "source"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(source)
    torch.manual_seed(1)
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=begin,
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )
    model = WhisperForConditionalGeneration(config)
    model.generation_config.suppress_tokens, model.generation_config.begin_suppress_tokens = [], []
    model.generation_config.alignment_heads = [[0, 0]]
    model.save_pretrained(source)
    target = folder / "whisper"
    TransformersConverter(str(source)).convert(str(target))
    tokenizer.save(str(target / "tokenizer.json"))
    return target
