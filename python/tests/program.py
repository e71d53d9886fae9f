"""A DyNet program that prints numbers, on libvpps with the argument vpps and on DyNet without."""
import os
import sys
import tempfile

if "vpps" in sys.argv:
    import vpps_dynet
import dynet_config
dynet_config.set(random_seed=3)
import dynet as dy
import numpy as np

if "vpps" in sys.argv:
    vpps_dynet.accelerate()


def tell(name, numbers):
    print(name, *("%.9g" % x for x in np.asarray(numbers, dtype=float).ravel()))


class Net:
    """A small model: a table, a matrix, a bias, a builder."""

    def __init__(self):
        self.model = dy.ParameterCollection()
        self.table = self.model.add_lookup_parameters((7, 5), name="table")
        self.w = self.model.add_parameters((4, 6), name="w")
        self.b = self.model.add_parameters(4, name="b")
        self.lstm = dy.VanillaLSTMBuilder(1, 5, 6, self.model)

    def scores(self, words):
        states = self.lstm.initial_state().transduce([self.table[k] for k in words])
        return [dy.affine_transform([self.b, self.w, h]) for h in states]

    def loss(self, words):
        return dy.esum([dy.pickneglogsoftmax(s, k % 4) for s, k in zip(self.scores(words), words)])

    def parameters(self):
        return np.concatenate([p.as_array().ravel() for p in (self.table, self.w, self.b)])


SENTENCES = [[1, 2, 3], [4, 0, 6, 5], [2, 2], [3, 1, 4, 1, 5]]
TRAINERS = {
    "sgd": lambda m: dy.SimpleSGDTrainer(m, 0.2),
    "cyclical": lambda m: dy.CyclicalSGDTrainer(m, learning_rate_min=0.05, learning_rate_max=0.3, step_size=3),
    "momentum": lambda m: dy.MomentumSGDTrainer(m, 0.05),
    "adagrad": lambda m: dy.AdagradTrainer(m, 0.1),
    "adadelta": dy.AdadeltaTrainer,
    "rmsprop": lambda m: dy.RMSPropTrainer(m, 0.01),
    "adam": lambda m: dy.AdamTrainer(m, 0.01),
    "amsgrad": lambda m: dy.AmsgradTrainer(m, 0.01),
}


def trained(make, updates=12):
    """A net after some updates, its trainer, and the losses on the way."""
    net, losses = Net(), []
    trainer = make(net.model)
    for k in range(updates):
        dy.renew_cg()
        loss = net.loss(SENTENCES[k % len(SENTENCES)])
        losses.append(loss.value())
        loss.backward()
        trainer.update()
        if k == 5:
            trainer.learning_rate /= 2
            trainer.set_clip_threshold(1)
        if k == 8:
            trainer.restart()
    return net, trainer, losses


for name, make in TRAINERS.items():
    net, trainer, losses = trained(make)
    tell(name, losses)
    tell(name + " parameters", net.parameters())
    tell(name + " rate", [trainer.learning_rate])

# Reading a graph.
dy.renew_cg()
scores = net.scores([1, 2, 3])
tell("values", [s.npvalue() for s in scores])
tell("list", scores[0].value())
tell("argmax", scores[1].tensor_value().argmax().as_numpy())
loss = dy.pickneglogsoftmax(scores[2], 1)
tell("scalar", [loss.scalar_value(), loss.value()])
loss.backward(full=True)
tell("gradients", [s.gradient() for s in scores[2:]])
tell("gradient of w", net.w.grad_as_array())
net.model.reset_gradient() if hasattr(net.model, "reset_gradient") else net.w.scale_gradient(0)

# Inputs that change, checkpoints, immediate execution, minibatches.
dy.renew_cg()
x = dy.vecInput(3)
x.set([1, 2, 3])
y = dy.tanh(dy.sum_elems(x) * 0.1)
first = y.value()
x.set([0, -2, 1])
tell("set", [first, y.value(recalculate=True)])
dy.cg_checkpoint()
tell("before revert", [dy.exp(y).value()])
dy.cg_revert()
tell("after revert", [dy.square(y).value()])
dy.renew_cg(immediate_compute=True, check_validity=True)
tell("immediate", dy.tanh(net.w * dy.inputVector(range(6))).value())
dy.renew_cg()
batch = dy.pickneglogsoftmax_batch(net.w * dy.inputTensor(np.arange(12).reshape(6, 2) / 10, batched=True), [1, 2])
tell("minibatch", batch.npvalue())
dy.sum_batches(batch).backward()

# Writing and reading parameters.
net.w.set_value(net.w.as_array() * 2)
net.table.init_row(3, [1, 2, 3, 4, 5])
net.b.zero()
if "vpps" in sys.argv:
    vpps_dynet.push(net.model, trainer)
dy.renew_cg()
tell("written", net.loss([3, 1]).value())
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    net.model.save(path)
    other = Net()
    other.model.populate(path)
dy.renew_cg()
tell("populated", other.loss([3, 1]).value())
