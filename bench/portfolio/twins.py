"""How long a training step of each model of models.h takes in PyTorch: the same layers and sizes, fp32 without TF32.

    python3 bench/portfolio/twins.py [--models A,B] [--batches 1,16,64] [--mode eager|compile|infer] [--steps 20]

CSV rows as portfolio prints them. compile is torch.compile(mode="reduce-overhead"). The loss is awaited after the last
of --steps steps; rows have the median of five such rounds.
"""

import argparse
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


def words(below, *shape):
    return torch.randint(0, below, shape, device="cuda")


def numbers(*shape):
    return torch.rand(*shape, device="cuda")


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, layers, hidden, length):
        super().__init__()
        self.sizes = vocabulary, length
        self.words = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers)
        self.scores = nn.Linear(hidden, vocabulary)

    def data(self, batch):
        vocabulary, length = self.sizes
        return (words(vocabulary, length + 1, batch),)

    def forward(self, x):
        y, _ = self.lstm(self.words(x[:-1]))
        return F.cross_entropy(self.scores(y).flatten(0, 1), x[1:].flatten(), reduction="sum")


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def data(self, batch):
        return numbers(batch, 784), words(10, batch)

    def forward(self, x, label):
        return F.cross_entropy(self.layers(x), label, reduction="sum")


class Attention(nn.Module):
    hidden, vocabulary, length = 256, 4000, 20

    def __init__(self):
        super().__init__()
        h = self.hidden
        self.source, self.target = nn.Embedding(self.vocabulary, h), nn.Embedding(self.vocabulary, h)
        self.encoder, self.decoder = nn.LSTM(h, h), nn.LSTMCell(2 * h, h)
        self.of_words, self.of_state = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
        self.weights = nn.Linear(h, 1, bias=False)
        self.scores = nn.Linear(h, self.vocabulary)

    def data(self, batch):
        return words(self.vocabulary, self.length, batch), words(self.vocabulary, self.length + 1, batch)

    def forward(self, x, y):
        encoded, _ = self.encoder(self.source(x))
        keys = self.of_words(encoded)
        h, c = encoded[-1], torch.zeros_like(encoded[-1])
        states = []
        for k in range(self.length):
            a = torch.softmax(self.weights(torch.tanh(keys + self.of_state(h))), 0)
            h, c = self.decoder(torch.cat([(encoded * a).sum(0), self.target(y[k])], 1), (h, c))
            states.append(h)
        return F.cross_entropy(self.scores(torch.stack(states)).flatten(0, 1), y[1:].flatten(), reduction="sum")


class GruTagger(nn.Module):
    hidden, vocabulary, labels, length = 200, 20000, 17, 24

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.hidden)
        self.gru = nn.GRU(self.hidden, self.hidden, bidirectional=True)
        self.scores = nn.Linear(2 * self.hidden, self.labels)

    def data(self, batch):
        return words(self.vocabulary, self.length, batch), words(self.labels, self.length, batch)

    def forward(self, x, labels):
        h, _ = self.gru(self.words(x))
        return F.cross_entropy(self.scores(h).flatten(0, 1), labels.flatten(), reduction="sum")


class CrfTagger(nn.Module):
    hidden, vocabulary, labels, length = 100, 20000, 9, 16

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.hidden)
        self.transitions = nn.Embedding(self.labels, self.labels)
        self.lstm = nn.LSTM(self.hidden, self.hidden, bidirectional=True)
        self.scores = nn.Linear(2 * self.hidden, self.labels)

    def data(self, batch):
        return words(self.vocabulary, self.length, batch), words(self.labels, self.length, batch)

    def forward(self, x, labels):
        h, _ = self.lstm(self.words(x))
        scores = self.scores(h)
        sums = scores[0]
        for score in scores[1:]:  # all labels of a word at once
            sums = torch.logsumexp(sums.unsqueeze(1) + self.transitions.weight, 2) + score
        right = scores.gather(2, labels.unsqueeze(2)).sum() + self.transitions.weight[labels[1:], labels[:-1]].sum()
        return torch.logsumexp(sums, 1).sum() - right


class Biaffine(nn.Module):
    hidden, arc, vocabulary, length = 200, 256, 20000, 24

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.hidden)
        self.lstm = nn.LSTM(self.hidden, self.hidden, bidirectional=True)
        self.dependent, self.head = nn.Linear(2 * self.hidden, self.arc), nn.Linear(2 * self.hidden, self.arc)
        self.between, self.prior = nn.Linear(self.arc, self.arc, bias=False), nn.Linear(self.arc, 1, bias=False)

    def data(self, batch):
        return words(self.vocabulary, self.length, batch), words(self.length, batch, self.length)

    def forward(self, x, heads):
        h, _ = self.lstm(self.words(x))
        h = h.transpose(0, 1)
        d, e = torch.relu(self.dependent(h)), torch.relu(self.head(h))
        scores = self.between(d) @ e.transpose(1, 2) + self.prior(e).transpose(1, 2)
        return F.cross_entropy(scores.flatten(0, 1), heads.flatten(), reduction="sum")


class WordCnn(nn.Module):
    embed, filters, vocabulary, length, labels = 128, 100, 20000, 30, 5

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.embed)
        self.filter = nn.ModuleList(nn.Conv1d(self.embed, self.filters, 3 + k) for k in range(3))
        self.scores = nn.Linear(3 * self.filters, self.labels)

    def data(self, batch):
        return words(self.vocabulary, batch, self.length), words(self.labels, batch)

    def forward(self, x, label):
        image = self.words(x).transpose(1, 2)
        strongest = [torch.relu(f(image)).amax(2) for f in self.filter]
        return F.cross_entropy(self.scores(torch.cat(strongest, 1)), label, reduction="sum")


class ImageCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(16, 32, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(7 * 7 * 32, 128), nn.ReLU(), nn.Linear(128, 10))

    def data(self, batch):
        return numbers(batch, 1, 28, 28), words(10, batch)

    def forward(self, x, label):
        return F.cross_entropy(self.layers(x), label, reduction="sum")


class TransformerLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.inner = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        def split(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        read = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)))
        x = self.norm1(x + self.o(read.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.inner(x))


class Transformer(nn.Module):
    width, heads, inner, layers, vocabulary, length = 256, 4, 1024, 2, 4000, 32

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.width)
        self.positions = nn.Parameter(torch.randn(self.length, self.width) / 16)
        self.stack = nn.Sequential(*(TransformerLayer(self.width, self.heads, self.inner) for _ in range(self.layers)))
        self.scores = nn.Linear(self.width, self.vocabulary)

    def data(self, batch):
        return words(self.vocabulary, batch, self.length), words(self.vocabulary, batch, self.length)

    def forward(self, x, y):
        scores = self.scores(self.stack(self.words(x) + self.positions))
        return F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum")


class Siamese(nn.Module):
    hidden, vocabulary, length = 256, 20000, 20

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.hidden)
        self.lstm = nn.LSTM(self.hidden, self.hidden)

    def data(self, batch):
        return words(self.vocabulary, self.length, batch), words(self.vocabulary, self.length, batch), numbers(batch)

    def forward(self, left, right, same):
        h, _ = self.lstm(self.words(torch.cat([left, right], 1)))
        a, b = h[-1].chunk(2)
        return (torch.exp(-(a - b).abs().sum(1)) - same).square().sum()


class Autoencoder(nn.Module):
    pixels, hidden, code = 784, 400, 20

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(self.pixels, self.hidden), nn.ReLU())
        self.mean, self.spread = nn.Linear(self.hidden, self.code), nn.Linear(self.hidden, self.code)
        self.decode = nn.Sequential(
            nn.Linear(self.code, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.pixels))

    def data(self, batch):
        return (numbers(batch, self.pixels),)

    def forward(self, x):
        h = self.encode(x)
        mean, log_variance = self.mean(h), self.spread(h)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        errors = F.binary_cross_entropy_with_logits(self.decode(z), x, reduction="sum")
        return errors + 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()


class RegularizedModel(nn.Module):
    hidden, vocabulary, length, layers = 256, 10000, 20, 2

    def __init__(self):
        super().__init__()
        h = self.hidden
        self.words = nn.Embedding(self.vocabulary, h)
        self.of_input = nn.ModuleList(nn.Linear(h, 4 * h) for _ in range(self.layers))
        self.of_state = nn.ModuleList(nn.Linear(h, 4 * h, bias=False) for _ in range(self.layers))
        self.norms = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(4 * h), nn.LayerNorm(4 * h), nn.LayerNorm(h)]) for _ in range(self.layers))
        self.scores = nn.Linear(h, self.vocabulary)

    def data(self, batch):
        return (words(self.vocabulary, self.length + 1, batch),)

    def read(self, layer, x):
        norms, h = self.norms[layer], x.new_zeros(x.shape[1:])
        c, out = h, []
        seen, kept = F.dropout(torch.ones_like(h), 0.3), F.dropout(torch.ones_like(h), 0.3)
        for gates in norms[0](self.of_input[layer](x * seen)):  # all words at once
            i, f, o, u = (gates + norms[1](self.of_state[layer](h * kept))).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(norms[2](c))
            out.append(h)
        return torch.stack(out)

    def forward(self, x):
        y = self.words(x[:-1])
        for layer in range(self.layers):
            y = self.read(layer, y)
        return F.cross_entropy(self.scores(F.dropout(y, 0.3)).flatten(0, 1), x[1:].flatten(), reduction="sum")


class SkipGram(nn.Module):
    width, vocabulary, others = 128, 100000, 5

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.width, sparse=True)
        self.contexts = nn.Embedding(self.vocabulary, self.width, sparse=True)

    def data(self, batch):
        return words(self.vocabulary, batch), words(self.vocabulary, batch, 1 + self.others)

    def forward(self, x, y):
        scores = (self.contexts(y) @ self.words(x).unsqueeze(2)).squeeze(2)
        return F.softplus(-scores[:, 0]).sum() + F.softplus(scores[:, 1:]).sum()


class StackParser(nn.Module):
    """Examples one after another: each has another sequence of actions."""

    hidden, vocabulary, actions, length = 128, 20000, 3, 20

    def __init__(self):
        super().__init__()
        h = self.hidden
        self.words, self.names = nn.Embedding(self.vocabulary, h), nn.Embedding(self.actions, h)
        self.stack, self.rest, self.history = nn.LSTMCell(h, h), nn.LSTM(h, h), nn.LSTMCell(h, h)
        self.state, self.scores = nn.Linear(3 * h, h), nn.Linear(h, self.actions)
        self.joined = nn.ModuleList([nn.Linear(2 * h, h), nn.Linear(2 * h, h)])

    def data(self, batch):
        return words(self.vocabulary, batch, self.length), torch.rand(batch, 2 * self.length).tolist()

    def parse(self, word, choice):
        x, name = self.words(word), self.names.weight
        rest = torch.cat([self.rest(x.flip(0))[0].flip(0), torch.zeros_like(x[:1])])
        history, done, taken = self.history(name[0:1]), 0, []
        open_, states = [(name[0:1], self.stack(name[0:1]))], []
        for step in range(2 * self.length - 1):
            must, may = len(open_) < 3, done < self.length
            action = 0 if must or (may and choice[step] < 0.5) else 1 if choice[step] < 0.75 else 2
            states.append(torch.cat([open_[-1][1][0], rest[done : done + 1], history[0]], 1))
            taken.append(action)
            history = self.history(name[action : action + 1], history)
            if action == 0:
                made, done = x[done : done + 1], done + 1
            else:
                right, left = open_.pop()[0], open_.pop()[0]
                made = torch.tanh(self.joined[action - 1](torch.cat([left, right], 1)))
            open_.append((made, self.stack(made, open_[-1][1])))
        scores = self.scores(torch.tanh(self.state(torch.cat(states))))
        return F.cross_entropy(scores, torch.tensor(taken, device="cuda"), reduction="sum")

    def forward(self, x, choices):
        return sum(self.parse(word, choice) for word, choice in zip(x, choices))


class GraphNetwork(nn.Module):
    """The graphs of a minibatch are parts of one."""

    hidden, kinds, nodes, edges, rounds, symbols, classes = 128, 3, 24, 48, 4, 100, 10

    def __init__(self):
        super().__init__()
        h = self.hidden
        self.symbol = nn.Embedding(self.symbols, h)
        self.message = nn.Linear(h, self.kinds * h, bias=False)
        self.cell = nn.GRUCell(h, h)
        self.weight, self.word = nn.Linear(2 * h, h), nn.Linear(2 * h, h)
        self.scores = nn.Linear(h, self.classes)

    def data(self, batch):
        start = self.nodes * torch.arange(batch, device="cuda").unsqueeze(1)
        begin = start + words(self.nodes, batch, self.edges)
        end = start + torch.arange(self.edges, device="cuda") % self.nodes
        message = self.kinds * begin.flatten() + words(self.kinds, batch * self.edges)
        return words(self.symbols, batch * self.nodes), message, end.flatten(), words(self.classes, batch)

    def forward(self, symbols, message, end, label):
        first = h = self.symbol(symbols)
        for _ in range(self.rounds):
            messages = self.message(h).unflatten(1, (self.kinds, -1)).flatten(0, 1)
            h = self.cell(torch.zeros_like(h).index_add(0, end, messages[message]), h)
        both = torch.cat([h, first], 1)
        said = torch.sigmoid(self.weight(both)) * torch.tanh(self.word(both))
        read = said.unflatten(0, (-1, self.nodes)).sum(1)
        return F.cross_entropy(self.scores(read), label, reduction="sum")


MODELS = {
    "attention": Attention,
    "autoencoder": Autoencoder,
    "biaffine": Biaffine,
    "crf_tagger": CrfTagger,
    "graph_network": GraphNetwork,
    "gru_tagger": GruTagger,
    "image_cnn": ImageCnn,
    "language_model_128": lambda: LanguageModel(2000, 1, 128, 20),
    "language_model_256": lambda: LanguageModel(10000, 2, 256, 20),
    "language_model_512": lambda: LanguageModel(10000, 2, 512, 30),
    "perceptron": Perceptron,
    "regularized_model": RegularizedModel,
    "siamese": Siamese,
    "skip_gram": SkipGram,
    "stack_parser": StackParser,
    "transformer": Transformer,
    "word_cnn": WordCnn,
}


def measure(name, batch, mode, steps):
    model = MODELS[name]().cuda()
    data = model.data
    trainer = torch.optim.SGD(model.parameters(), lr=0.001)
    sparse = any(getattr(m, "sparse", False) for m in model.modules())
    torch._dynamo.reset()  # else the second batch size would be compiled for any size
    run = torch.compile(model, mode="reduce-overhead") if mode == "compile" else model

    def step():
        loss = run(*data(batch))
        trainer.zero_grad(set_to_none=True)
        loss.backward()
        if not sparse:  # PyTorch clips dense gradients only
            nn.utils.clip_grad_norm_(model.parameters(), 5.0, foreach=True)
        trainer.step()
        return loss

    def answer():
        with torch.no_grad():
            return run(*data(batch))

    once = answer if mode == "infer" else step
    start = time.perf_counter()
    first = once().item()
    cold = time.perf_counter() - start
    for _ in range(3):
        once()
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(steps):
            loss = once()
        last = loss.item()
        times.append((time.perf_counter() - start) / steps)
    print(f"{name},torch,{mode},{batch},{1e3 * statistics.median(times):.3f},{1e3 * cold:.0f},{first:.4f},{last:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--mode", default="eager")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name in options.models.split(","):
        for batch in options.batches.split(","):
            measure(name, int(batch), options.mode, options.steps)


if __name__ == "__main__":
    main()
