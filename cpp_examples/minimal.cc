// XOR: an ordinary DyNet program, but for the two lines with hndl.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <vpps/vpps.hpp>
#include <cstdio>
using namespace dynet;

int main(int argc, char **argv) {
  initialize(argc, argv);
  ParameterCollection model;
  Parameter W = model.add_parameters({8, 2}), b = model.add_parameters({8});
  Parameter v = model.add_parameters({1, 8});
  vpps::handle hndl(model); // plans where the weights live, compiles their kernel
  for (unsigned step = 0; step < 4000; step++) {
    ComputationGraph cg;
    float p = step & 1 ? 1 : -1, q = step & 2 ? 1 : -1;
    Expression x = input(cg, {2}, {p, q}), y = input(cg, -p * q);
    Expression h = tanh(affine_transform({parameter(cg, b), parameter(cg, W), x}));
    hndl.fb(model, cg, squared_distance(parameter(cg, v) * h, y)); // forward, backward, update
  }
  float loss = hndl.sync_get_latest_loss();
  std::printf("loss %g\n", loss);
  return loss < 0.01f ? 0 : 1;
}
