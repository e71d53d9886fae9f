// The smallest DyNet program that trains with an installed libvpps: the loss of one
// example must fall.
#include <cstdio>
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

using namespace dynet;

int main(int argc, char **argv) {
  initialize(argc, argv);
  ParameterCollection m;
  SimpleSGDTrainer trainer(m);
  Parameter w = m.add_parameters({3, 2});
  vpps::handle hndl(m, trainer);
  float first = 0, last = 0;
  for (int k = 0; k < 10; k++) {
    ComputationGraph cg;
    Expression x = input(cg, {2}, {0.5f, -1.f});
    hndl.fb(m, cg, pickneglogsoftmax(parameter(cg, w) * x, 1u));
    last = hndl.sync_get_latest_loss();
    if (k == 0)
      first = last;
  }
  std::printf("loss %g -> %g\n", first, last);
  return last < first ? 0 : 1;
}
