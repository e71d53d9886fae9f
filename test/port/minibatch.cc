// Learns XOR of the signs of two numbers with minibatches, with Adam, and loads what it has saved.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/io.h>
#include <dynet/training.h>

#include <cstdio>
#include <random>
#include <vector>

static float loss_of(dynet::ComputationGraph &cg, dynet::Parameter &W, dynet::Parameter &b,
                     dynet::Parameter &v, dynet::Trainer *trainer, std::mt19937 &random) {
  const unsigned batch = 16;
  std::vector<float> x, y;
  for (unsigned k = 0; k < batch; k++) {
    const float p = random() % 2 ? 1.f : -1.f, q = random() % 2 ? 1.f : -1.f;
    x.push_back(p);
    x.push_back(q);
    y.push_back(p * q);
  }
  const dynet::Expression in = dynet::input(cg, dynet::Dim({2}, batch), x);
  const dynet::Expression h =
      dynet::tanh(dynet::affine_transform({dynet::parameter(cg, b), dynet::parameter(cg, W), in}));
  const dynet::Expression error = dynet::squared_distance(
      dynet::parameter(cg, v) * h, dynet::input(cg, dynet::Dim({1}, batch), y));
  const dynet::Expression loss = dynet::sum_batches(error) / float(batch);
  const float value = dynet::as_scalar(cg.forward(loss));
  if (trainer) {
    cg.backward(loss);
    trainer->update();
  }
  return value;
}

int main(int argc, char **argv) {
  dynet::DynetParams options = dynet::extract_dynet_params(argc, argv);
  options.random_seed = 7;
  dynet::initialize(options);
  dynet::ParameterCollection model;
  dynet::Parameter W = model.add_parameters({8, 2}), b = model.add_parameters({8}),
                   v = model.add_parameters({1, 8});
  std::mt19937 random(1);
  {
    dynet::AdamTrainer trainer(model, 0.02f);
    for (int step = 0; step < 200; step++) {
      dynet::ComputationGraph cg;
      const float loss = loss_of(cg, W, b, v, &trainer, random);
      if (step % 50 == 49)
        std::printf("step %d: loss %.4f\n", step + 1, loss);
    }
  }
  const char *file = argc > 1 ? argv[1] : "minibatch.model";
  { dynet::TextFileSaver(file).save(model); }
  W.set_updated(false);
  dynet::TextFileLoader(file).populate(model);
  dynet::ComputationGraph cg;
  const float loss = loss_of(cg, W, b, v, nullptr, random);
  std::printf("loaded: loss %.4f\n", loss);
  return loss < 0.1f ? 0 : 1;
}
