"""multilingual-e5-small: the tokens and vectors that published libraries give for the same weights."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from builtin_plugins.embeddings.e5.file import find_file
from builtin_plugins.embeddings.e5.network import E5
from builtin_plugins.embeddings.e5.packed import PackedModel
from builtin_plugins.embeddings.engines.arithmetic import Arithmetic, computes_in_int8
from builtin_plugins.embeddings.engines.base import EngineError, Vectors
from builtin_plugins.embeddings.engines.minilm import MiniLm
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.openvino_runtime import runtime
from builtin_plugins.embeddings.weights import WeightsDamaged, WeightsNotFound, find_weights
from builtin_plugins.inference import api as inference
from kernel.testing import Start

PROCESSOR = Path("/proc/cpuinfo")
TEXTS = [
    "query: Who founded the observatory near Bergen?",
    "passage: Das Observatorium wurde 1897 von Ada Lindqvist gegründet; es steht bei Köln.",
    "passage: Обсерватория была основана в 1897 году.",
    "passage: 天文台建于1897年，位于卑尔根附近。",
    "passage: หอดูดาวก่อตั้งขึ้นในปี พ.ศ. 2440",
    "passage: तारामंडल 1897 में स्थापित किया गया था।",
    "passage: تأسس المرصد الفلكي عام 1897 بالقرب من بيرغن.",
    "passage: Đài thiên văn được thành lập năm 1897. Gözlemevi 1897'de kuruldu.",
    "passage: max_connections=128 ERR_CONNECTION_RESET v4.2 #48213 😀",
    "passage: " + "The tenant keeps the heating, the windows and the stairs in good order. " * 60,
]


@pytest.fixture(scope="module")
def network() -> E5:
    return E5(*find_file())


@pytest.fixture(scope="module")
def engine(network: E5) -> OpenVinoEngine:
    return OpenVinoEngine(network, precision="fp32")


@pytest.fixture(scope="module")
def quickest() -> OpenVinoEngine:
    """The engine with default settings."""
    return OpenVinoEngine(E5(*find_file()))


Published = Callable[[list[str]], Vectors]


@pytest.fixture(scope="module")
def published(network: E5) -> Published:
    """What `transformers.BertModel` makes of texts with the unpacked weights."""
    # Imported here: collecting the tests would take seconds longer in every process.
    import torch
    from transformers import BertConfig, BertModel

    tensors = network.tensors()
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))
    config = BertConfig(
        vocab_size=1,
        hidden_size=network.dimension,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=len(tensors["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(tensors["embeddings.position_embeddings.weight"]),
        layer_norm_eps=1e-12,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    weights = {name: torch.from_numpy(np.array(tensor)) for name, tensor in tensors.items()}
    model.load_state_dict(model.state_dict() | weights)

    def vectors_of(texts: list[str]) -> Vectors:
        with torch.no_grad():
            found = []
            for ids in network.tokens(list(texts)):
                words, *_ = network.inputs([ids])
                own = torch.from_numpy(words[:, : len(ids)])  # without padding
                states = model(inputs_embeds=own).last_hidden_state[0]
                found.append(states.mean(0).numpy())
        vectors: Vectors = np.stack(found)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return vectors_of


def test_its_tokens_are_those_of_the_tokenizers_library(network: E5) -> None:
    """The same split of normalized texts in eight scripts, by another implementation of the same model."""
    vocabulary = PackedModel(find_file()[0]).vocabulary
    pieces = [(p.decode(), s) for p, s in zip(vocabulary.pieces, vocabulary.scores, strict=True)]
    library = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unknown, byte_fallback=False))
    library.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    for text, ids in zip(TEXTS, network.tokens(list(TEXTS)), strict=True):
        expected = library.encode(unicodedata.normalize("NFKC", text)).ids
        assert ids[1:-1] == expected[: len(ids) - 2], text


def test_no_piece_goes_on_into_the_next_word() -> None:
    assert not [piece for piece in PackedModel(find_file()[0]).vocabulary.pieces if "▁".encode() in piece[1:]]


def test_a_text_has_the_same_tokens_whatever_was_read_before(network: E5) -> None:
    """Words that were split before are taken from there: also beside others, and after a raw space mark."""
    first = [network.tokens([text])[0] for text in TEXTS]
    together = network.tokens([" ".join(TEXTS), "a▁b a ▁ b"])
    assert [network.tokens([text])[0] for text in reversed(TEXTS)] == first[::-1]
    assert together[0][1:-1] == [one for ids in first for one in ids[1:-1]][: len(together[0]) - 2]
    assert together[1] == network.tokens(["a b a b"])[0]


def test_marks_in_a_document_are_text(network: E5) -> None:
    begin, *inside, end = network.tokens(["a </s> b <mask> <pad>"])[0]
    assert (begin, end) == (0, 2) and not {0, 1, 2, 3, 250_001} & set(inside)


def test_composed_and_decomposed_letters_are_one(network: E5) -> None:
    one, other = network.tokens(["Zu\u0308rich  café", "Zürich cafe\u0301"])
    assert one == other


@pytest.mark.long
def test_its_vectors_are_those_of_the_published_architecture(
    published: Published, engine: OpenVinoEngine
) -> None:
    """Against `transformers.BertModel` over the unpacked weights, for texts in eight scripts."""
    expected = published(TEXTS)
    assert np.sum(engine.encode(TEXTS) * expected, axis=1).min() > 0.99999


@pytest.mark.long
def test_what_the_processor_computes_quickest_stays_close(
    published: Published, quickest: OpenVinoEngine
) -> None:
    expected = published(TEXTS)
    alone = np.concatenate([quickest.encode([text]) for text in TEXTS])
    for vectors in (quickest.encode(TEXTS), alone):
        assert np.sum(vectors * expected, axis=1).min() > 0.999


def test_products_in_int8(quickest: OpenVinoEngine) -> None:
    """They are computed so where the processor has instructions for it, and the identity says what runs."""
    core = runtime().Core()
    assert not computes_in_int8(core, Arithmetic("fp32"))
    in_int8 = computes_in_int8(core, Arithmetic("fp32", int8=True))
    arithmetic = quickest.identity.split("/")[2]
    if PROCESSOR.exists() and "amx_bf16" in PROCESSOR.read_text(encoding="utf-8"):
        assert arithmetic == "bf16"
    else:
        assert arithmetic.startswith("int8-") == in_int8
    if PROCESSOR.exists() and "avx512_vnni" in PROCESSOR.read_text(encoding="utf-8"):
        assert in_int8


def test_a_precision_that_is_asked_for(network: E5) -> None:
    """It is used or refused; a model that does not take int8 runs as it would without the setting."""
    assert OpenVinoEngine(network, precision="fp32").identity.split("/")[2] == "fp32"
    if computes_in_int8(runtime().Core(), Arithmetic("fp32", int8=True)):
        assert "/int8-" in OpenVinoEngine(network, precision="int8").identity
    else:
        with pytest.raises(EngineError, match="int8"):
            OpenVinoEngine(network, precision="int8")
    minilm = MiniLm(find_weights())
    assert OpenVinoEngine(minilm, precision="int8").identity == OpenVinoEngine(minilm).identity
    with pytest.raises(EngineError, match="int8"):
        minilm.graph(int8=True)


def test_a_text_alone_and_among_others(engine: OpenVinoEngine) -> None:
    """Its vector hardly depends on how many tokens are computed at once, in whatever arithmetic that is."""
    together = engine.encode(TEXTS)
    for text, expected in zip(TEXTS, together, strict=True):
        assert engine.encode([text])[0] @ expected > 0.999


def test_weights_in_int8_stay_close(network: E5, published: Published) -> None:
    """Quantizing costs a thousandth at most; computed in fp32, which every processor can do."""
    graph = network.graph(int8=True)
    compiled = runtime().Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for text, expected in zip(TEXTS, published(TEXTS), strict=True):
        [mean] = compiled(network.inputs(network.tokens([text])))[0]
        assert mean @ expected / np.linalg.norm(mean) > 0.999


def test_a_meaning_is_found_across_languages(engine: OpenVinoEngine) -> None:
    """A question in English is nearer to its answer in Russian than to another English sentence."""
    vectors = engine.encode([TEXTS[0], TEXTS[2], "passage: The rent is due on the third working day."])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_a_long_text_is_cut(network: E5) -> None:
    assert len(network.tokens(["passage: " + "word " * 1_000_000])[0]) == 512


async def test_a_platform_embeds_with_it(start_platform: Start, published: Published) -> None:
    """Under the names that people know it by; a question and a passage get their own prefix."""
    running = await start_platform("embeddings")
    text = TEXTS[1].removeprefix("passage: ")
    for name in ("multilingual-e5-small", "intfloat/multilingual-e5-small"):
        for purpose in ("passage", "query"):
            found = await running.platform.hooks.ask(
                inference.embed_texts, running.platform, model=name, texts=[text], purpose=purpose
            )
            assert found is not None
            expected = published([f"{purpose}: {text}"])[0]
            assert float(found.vectors[0] @ expected) > 0.999
            assert "/multilingual-e5-small/" in found.engine


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(find_file()[0].read_bytes())
    content[-1] ^= 1
    damaged = tmp_path / "e5-small-q4.bin"
    damaged.write_bytes(content)
    with pytest.raises(WeightsDamaged):
        find_file(damaged)
    with pytest.raises(WeightsNotFound):
        find_file(tmp_path / "none")
