// A DyNet program that any number of processes train (test/mpi/run): rank 0 prints what they have
// learnt, which does not depend on how many they are. With --vpps-data-parallel it makes no object
// for that. Run with "throw", rank 1 ends by an exception, and the others are told.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dynet;

enum { WORDS = 20, SENTENCES = 12, EPOCHS = 3 };

static Expression loss_of(ComputationGraph &cg, LSTMBuilder &lstm, LookupParameter words,
                          Parameter out, unsigned sentence) {
  lstm.new_graph(cg);
  lstm.start_new_sequence();
  for (unsigned k = 0; k < 2 + sentence % 4; k++)
    lstm.add_input(lookup(cg, words, (5 * sentence + 3 * k) % WORDS));
  return pickneglogsoftmax(parameter(cg, out) * lstm.back(), sentence % 3);
}

static void run(bool throws, bool by_flag) {
  ParameterCollection model;
  LSTMBuilder lstm(1, 8, 16, model);
  LookupParameter words = model.add_lookup_parameters(WORDS, {8});
  Parameter out = model.add_parameters({3, 16});
  AdamTrainer trainer(model, 0.01f);
  vpps::handle hndl(model, trainer);
  const std::unique_ptr<vpps::data_parallel> ranks(by_flag ? nullptr
                                                           : new vpps::data_parallel(model));
  std::vector<float> values(3 * 16); // all ranks set them: those of rank 0 count
  for (size_t i = 0; i < values.size(); i++)
    values[i] = 0.01f * static_cast<float>(i % 7) + static_cast<float>(vpps::rank());
  out.set_value(values);
  for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
    // A step has six sentences: those that a rank does not have the others do.
    for (unsigned first = 0; first < SENTENCES; first += 6) {
      if (throws && epoch == 1 && vpps::rank() == 1)
        throw std::runtime_error("there is no more data");
      ComputationGraph cg;
      std::vector<Expression> losses;
      for (unsigned k = vpps::rank(); k < 6; k += vpps::ranks())
        losses.push_back(loss_of(cg, lstm, words, out, first + k));
      hndl.fb(model, cg, sum(losses));
      vpps::global_loss(hndl);
    }
    vpps::join();
  }
  if (vpps::rank() > 0)
    return;
  std::printf("learnt");
  for (float v : as_vector(*out.values()))
    std::printf(" %.6f", v);
  std::printf("\n");
}

int main(int argc, char **argv) {
  try {
    DynetParams params = extract_dynet_params(argc, argv);
    initialize(params);
    run(argc > 1 && std::string(argv[1]) == "throw", params.vpps_data_parallel);
  } catch (const std::exception &e) {
    std::printf("a rank: %s\n", e.what());
    std::fflush(stdout);
    sleep(1); // mpirun may kill the others as soon as one has ended
    return 1;
  }
}
