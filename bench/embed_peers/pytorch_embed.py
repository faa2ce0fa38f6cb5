#!/usr/bin/env python3
"""Embeds texts by PyTorch, for bench/embed_bench.cc.

    pytorch_embed.py MODEL_FOLDER

Reads lines of JSON, arrays of texts, and answers each with a line: the nanoseconds of processor time that
embedding them together took on one thread, as a whole number, and the first vector. Tokenizer, model, mean
pooling and normalisation are called directly, without what sentence-transformers does around them.
"""

import json
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
from transformers import AutoModel, AutoTokenizer

torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1]).eval()


@torch.inference_mode()
def embed(texts):
    batch = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean, dim=1)


print(torch.__version__, flush=True)
for line in sys.stdin:
    texts = json.loads(line)
    begin = time.process_time_ns()
    vectors = embed(texts)
    spent = time.process_time_ns() - begin
    print(json.dumps([spent, [round(float(x), 7) for x in vectors[0]]]), flush=True)
