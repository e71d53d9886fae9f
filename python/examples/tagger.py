#!/usr/bin/env python3
"""Trains a BiLSTM tagger, an ordinary DyNet program but for the lines with vpps_dynet.

    python/examples/tagger.py                  # on libvpps
    python/examples/tagger.py --on dynet       # on DyNet alone, or --on autobatch: the same losses
    python/examples/tagger.py --on handle      # on libvpps, a launch for each batch

FILE has a sentence a line, each word with its tag, word|TAG.
"""
import argparse
import os
import time

data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cpp_examples/data/tags/train.txt")
options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
options.add_argument("file", metavar="FILE", nargs="?", default=data)
options.add_argument("--on", choices=["vpps", "handle", "dynet", "autobatch"], default="vpps")
options.add_argument("--epochs", type=int, default=4)
options.add_argument("--batch", type=int, default=16, help="sentences of a graph")
options.add_argument("--hidden", type=int, default=64, help="size of embeddings and of all layers")
options.add_argument("--seed", type=int, default=1)
options = options.parse_args()

accelerated = options.on in ("vpps", "handle")
if accelerated:
    import vpps_dynet  # the first line: before dynet

import dynet_config
dynet_config.set(mem=1024, random_seed=options.seed, autobatch=int(options.on == "autobatch"))
import dynet as dy

if accelerated:
    vpps_dynet.accelerate()  # the second

with open(options.file, encoding="utf-8") as file:
    sentences = [[pair.rsplit("|", 1) for pair in line.split()] for line in file]
words = {w: k for k, w in enumerate(sorted({w for s in sentences for w, _ in s}))}
tags = {t: k for k, t in enumerate(sorted({t for s in sentences for _, t in s}))}

n = options.hidden
model = dy.ParameterCollection()
table = model.add_lookup_parameters((len(words), n))
before, after = dy.VanillaLSTMBuilder(1, n, n, model), dy.VanillaLSTMBuilder(1, n, n, model)
layer = model.add_parameters((n, 2 * n))
scores = model.add_parameters((len(tags), n))
trainer = dy.AdamTrainer(model)


def loss_of(sentence):
    x = [dy.lookup(table, words[w]) for w, _ in sentence]
    left = before.initial_state().transduce(x)
    right = after.initial_state().transduce(x[::-1])[::-1]
    return [dy.pickneglogsoftmax(scores * dy.tanh(layer * dy.concatenate([l, r])), tags[t])
            for l, r, (_, t) in zip(left, right, sentence)]


handle = vpps_dynet.Handle(model, trainer) if options.on == "handle" else None
for epoch in range(1, options.epochs + 1):
    total, clock, processor = 0.0, time.perf_counter(), time.process_time()
    for first in range(0, len(sentences), options.batch):
        dy.renew_cg()
        loss = dy.esum([l for s in sentences[first:first + options.batch] for l in loss_of(s)])
        if handle:
            handle.fb(loss)  # does not wait; latest_loss does
            total += handle.latest_loss()
        else:
            total += loss.value()
            loss.backward()
            trainer.update()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    print("epoch %d: loss %.3f, %.1f sentences/s, %.1f in a second of processor time" %
          (epoch, total / len(sentences), len(sentences) / clock, len(sentences) / processor), flush=True)
if handle:
    handle.close()
