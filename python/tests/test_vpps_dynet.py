#!/usr/bin/env python3
"""Tests of the module vpps_dynet. Each runs a program of its own, for a process has one DyNet.

PYTHONPATH has the built module. It exits with 77 and a reason if this Python has no DyNet.
"""
import importlib.util
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TAGGER = os.path.join(HERE, "../examples/tagger.py")
PROGRAM = os.path.join(HERE, "program.py")
START = """
import vpps_dynet, dynet as dy, numpy as np, gc, os, signal, sys, threading, time
vpps_dynet.accelerate()
model = dy.ParameterCollection()
w = model.add_parameters((64, 64))
trainer = dy.SimpleSGDTrainer(model, 0.001)
def loss_of(n):
    dy.renew_cg()
    losses = []
    for _ in range(n):
        x = dy.inputVector(np.ones(64) * .01)
        for _ in range(3):
            x = dy.tanh(w * x)
        losses.append(dy.sum_elems(x))
    return dy.esum(losses)
def error(call):
    try:
        call()
    except Exception as e:
        return "%s: %s" % (type(e).__name__, e)
    return "no error"
"""


def run(*arguments):
    """The output of a program that must end by itself, with 0."""
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError("exit status %d: %s%s" % (done.returncode, done.stdout, done.stderr))
    return done.stdout


def numbers(text):
    return [float(x) for x in re.findall(r"(?<!\S)[-+]?\d[\d.e+-]*", text)]


class TheModule(unittest.TestCase):
    def prints(self, program, *patterns):
        lines = run("-c", START + program).splitlines()
        self.assertEqual(len(lines), len(patterns), lines)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line[:500], pattern)

    def same(self, dynets, ours, tolerance):
        labels = [re.sub(r"(?<!\S)[-+]?\d.*", "", text, flags=re.MULTILINE) for text in (dynets, ours)]
        self.assertEqual(*labels)
        for expected, line in zip(dynets.splitlines(), ours.splitlines()):
            a, b = numbers(expected), numbers(line)
            self.assertEqual(len(a), len(b), line)
            largest = max(map(abs, a))
            for x, y in zip(a, b):
                self.assertLessEqual(abs(x - y), tolerance * largest, "%s\n%s" % (expected, line))

    def test_a_program_computes_what_dynet_computes(self):
        dynets = run(PROGRAM)
        self.assertGreater(len(numbers(dynets)), 500)
        self.same(dynets, run(PROGRAM, "vpps"), 1e-5)

    def test_the_tagger_has_dynets_losses(self):
        def losses(on):
            text = run(TAGGER, "--epochs", "2", "--hidden", "16", "--on", on)
            return [float(x) for x in re.findall(r"loss ([\d.]+)", text)]
        expected = losses("dynet")
        self.assertEqual(len(expected), 2)
        self.assertLess(expected[1], expected[0])
        for on in ("vpps", "handle", "autobatch"):
            for a, b in zip(expected, losses(on)):
                self.assertAlmostEqual(a, b, delta=0.002)

    def test_dynet_must_not_be_imported_first(self):
        text = run("-c", "import dynet\ntry:\n import vpps_dynet\nexcept ImportError as e:\n print(e)")
        self.assertIn("import vpps_dynet before dynet", text)

    def test_errors_are_exceptions(self):
        self.prints("""
print(error(lambda: loss_of(1).backward() or w * dy.inputVector([1, 2])))
dy.renew_cg()
print(error(lambda: (w * dy.inputVector([1] * 64)).backward()))
dy.renew_cg()
print(error(lambda: dy.log(dy.sum_elems(w) * 0 - 1).backward()))
old = loss_of(1)
dy.renew_cg()
print(error(old.value))
print(error(lambda: vpps_dynet.Handle(model, 3)))
handle = vpps_dynet.Handle(model, trainer)
print(error(lambda: handle.fb(w * dy.inputVector([1] * 64))))
print(error(lambda: handle.fb("loss")))
handle.close()
print(error(lambda: handle.fb(loss_of(1))))
print(error(lambda: loss_of(2).value()))
""", "^ValueError: .*MatrixMultiply", "^ValueError: backward needs a scalar", "^RuntimeError: backward from node .*NaN",
                    "^(RuntimeError|ValueError): .*[Ss]tale", "^AttributeError", "^ValueError: fb needs a scalar",
                    "^AttributeError", "^ValueError: the handle is closed", "^no error")

    def test_a_batch_that_is_not_finite_is_an_error_of_the_handle(self):
        self.prints("""
before = w.as_array()
handle = vpps_dynet.Handle(model, trainer)
print(error(lambda: (handle.fb(dy.log(dy.sum_elems(w) * 0 - 1)), handle.latest_loss())))
handle.close()
print((w.as_array() == before).all())
""", "^RuntimeError: .*not finite", "^True")

    def test_a_handle_trains_and_gives_the_parameters_back(self):
        self.prints("""
before = w.as_array()
first = loss_of(3).value()
with vpps_dynet.Handle(model, trainer) as handle:
    loss = loss_of(3)
    kept = dy.exp(loss)
    handle.keep(kept)
    print(handle.fb(kept))
    print(abs(handle.latest_loss() - kept.value()) < 1e-5 * kept.value())
    print(np.isfinite(w.as_array()).all() and (w.as_array() != before).any())
    handle.fb(loss_of(3))
    model.save("/dev/stdout")
    handle.fb(loss_of(3))
    handle.pull()
    w.scale(2)
    handle.fb(loss_of(3))
    w.set_value(before)
    print(abs(loss_of(3).value() - first) < 1e-6 * abs(first))
    handle.fb(loss_of(3))
    w.scale(2)
    print(error(lambda: handle.fb(loss_of(3))))
print(np.isfinite(w.as_array()).all())
""", "^0.0", "^True", "^True", "^#Parameter#", r"^[-+]\d[-+ \d.e]*$", "^True", "^ValueError: .*call pull", "^True")

    def test_a_handle_answers_by_tickets(self):
        self.prints("""
def parts(n):
    dy.renew_cg()
    x = dy.inputTensor(np.arange(128.).reshape(64, 2) * .001 * n, batched=True)
    y = dy.tanh(w * x)
    return y, dy.concatenate_cols([dy.inputVector([1, 2]), dy.inputVector([3, n])])
want = []
for n in range(5):
    want.append([e.npvalue() for e in parts(n)])
with vpps_dynet.Handle(model, trainer) as handle:
    tickets = [handle.infer(*parts(n)) for n in range(5)]
    got = {n: handle.result(tickets[n]) for n in (3, 0, 4, 1, 2)}
    print([a.shape for a in got[4]] == [e.shape for e in want[4]])
    print(all(np.allclose(a, e, atol=1e-6) for n in range(5) for a, e in zip(got[n], want[n])))
    print(error(lambda: handle.result(tickets[0])))
    one = handle.infer(parts(2)[1])
    print(handle.result(one).tolist())
    handle.fb(loss_of(2))
    after = handle.infer(loss_of(1))
    gone = handle.infer(loss_of(1))
    handle.drop(gone)
    print(error(lambda: handle.result(gone)))
    print(error(lambda: handle.infer()))
    print(handle.result(after).tolist() == loss_of(1).npvalue().tolist())
""", "^True", "^True", "^ValueError: ticket 1: .*fetched", r"^\[\[1.0, 3.0\], \[2.0, 2.0\]\]", "^ValueError: ticket 8: .*dropped",
                    "^ValueError: infer: no expression", "^True")

    def test_a_saved_model_has_its_decay(self):
        program = """
import dynet_config
dynet_config.set(random_seed=5, weight_decay=0.1)
import dynet as dy
%s
model = dy.ParameterCollection()
w = model.add_parameters((3, 3))
trainer = dy.SimpleSGDTrainer(model)
handle = %s
for _ in range(5):
    dy.renew_cg()
    loss = dy.squared_norm(w * dy.inputVector([1, 2, 3]))
    %s
model.save("/dev/stdout")
"""
        dynets = run("-c", program % ("", "None", "loss.backward(); trainer.update()"))
        ours = run("-c", "import vpps_dynet" + program %
                   ("vpps_dynet.accelerate()", "vpps_dynet.Handle(model, trainer)", "handle.fb(loss)"))
        self.same(dynets, ours, 1e-5)

    def test_a_failed_batch_is_told_behind_reading(self):
        self.prints("""
before = w.as_array()
handle = vpps_dynet.Handle(model, trainer)
handle.fb(dy.log(dy.sum_elems(w) * 0 - 1))
print((w.as_array() == before).all())
print(error(lambda: handle.fb(loss_of(2))))
print(error(lambda: handle.fb(loss_of(2))))
""", "^True", "^RuntimeError: .*not finite", "^no error")

    def test_a_model_that_is_gone_is_an_error(self):
        self.prints("""
other = dy.ParameterCollection()
p = other.add_parameters((2, 2))
trainers = dy.AdamTrainer(other)
dy.sum_elems(p * dy.inputVector([1, 2])).backward()
trainers.update()
del other, p
gc.collect()
dy.renew_cg()
print(error(trainers.update))
""", "^RuntimeError: the model was destroyed before its trainer")

    def test_other_threads_run_while_a_call_waits(self):
        self.prints("""
ticks = [0]
def tick():
    while True:
        ticks[0] += 1
        time.sleep(0.0005)
threading.Thread(target=tick, daemon=True).start()
sys.setswitchinterval(100)  # the call itself gives the lock up, or nobody
loss = loss_of(20000)
before = ticks[0]
loss.value()
print(ticks[0] - before)
""", "^([2-9]|[1-9][0-9]+)$")

    def test_a_graph_that_another_thread_replaces_is_an_error(self):
        self.prints("""
seen = []
building = threading.Lock()  # DyNet itself crashes if threads build one graph together
sys.setswitchinterval(1e-5)
def work():
    for _ in range(60):
        def step():
            with building:
                loss = loss_of(40)
            loss.value()
            loss.backward()
            trainer.update()
        seen.append(error(step).split(":")[0])
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(seen), sorted(set(seen)))
print(error(lambda: loss_of(2).value()))
""", r"^240 \['RuntimeError'(, 'ValueError')?(, 'no error')?\]", "^no error")

    def test_the_interpreter_ends_beside_a_thread_that_trains(self):
        self.prints("""
def forever():
    loss = loss_of(3000)
    while True:
        loss.value(recalculate=True)
        trainer.update()
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.5)
print("end")
""", "^end")

    def test_the_interpreter_ends_with_a_handle_open(self):
        self.prints("handle = vpps_dynet.Handle(model, trainer)\nhandle.fb(loss_of(2))\nprint('end')", "^end")

    def test_an_interrupt_is_an_exception_once_the_call_is_done(self):
        self.prints("""
loss = loss_of(3000)
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        loss.value(recalculate=True)
except KeyboardInterrupt:
    print("interrupted")
print(error(lambda: loss_of(2).value()))
""", "^interrupted", "^no error")

    def test_a_forked_child_gets_an_error(self):
        self.prints("""
loss_of(2).value()
if os.fork() == 0:
    print(error(lambda: loss_of(2).value()), flush=True)
    os._exit(0)
os.wait()
""", "^RuntimeError: .*forked child")

    def test_it_tells_the_device(self):
        self.prints("print(vpps_dynet.device())", "^(cpu|cuda:0): ")


if __name__ == "__main__":
    if importlib.util.find_spec("_dynet") is None:
        print("skipped: needs DyNet's Python package (pip install dyNET38)")
        sys.exit(77)
    unittest.main()
