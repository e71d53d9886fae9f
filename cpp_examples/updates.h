// Training a model one batch at a time: a new graph for every batch, with the shape of its
// sentences, in one call or in DyNet's three. The few lines that differ from a program for DyNet
// alone are marked "libvpps".
#ifndef VPPS_EXAMPLES_UPDATES_H
#define VPPS_EXAMPLES_UPDATES_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <vpps/vpps.hpp> // libvpps

#include <locale>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.h"
#include "progress.h"
#include "trainers.h"

// The loss of a batch: the sum over its labels, and their mean.
struct batch_loss {
  size_t batch; // counted from 0
  double sum, mean;
};

template <class Model> class updates {
public:
  updates(const options &o, dynet::ParameterCollection &m, Model &model)
      : m(m), model(model), trainer(make_trainer(o.trainer, m, float(o.learning_rate))) {
    if (o.mode == "vpps")
      hndl.reset(new vpps::handle(m, *trainer)); // libvpps
  }

  // Trains on the sentences. True if that told a loss: hndl tells it VPPS_FB_LAG batches late.
  template <class Sentence>
  bool train(const std::vector<const Sentence *> &sentences, batch_loss &told) {
    const stopwatch clock;
    dynet::ComputationGraph cg;
    model.start(cg);
    std::vector<dynet::Expression> losses;
    for (const Sentence *s : sentences)
      model.add_losses(*s, losses);
    const dynet::Expression total = dynet::sum(losses);
    recording += clock.seconds();
    terms[count % told_late] = losses.size();
    const size_t batch = count++;
    if (hndl) {
      const float late = hndl->fb(m, cg, total); // libvpps
      return batch >= VPPS_FB_LAG && tell(batch - VPPS_FB_LAG, late, told);
    }
    const float loss = dynet::as_scalar(cg.forward(total));
    cg.backward(total);
    trainer->update();
    return tell(batch, loss, told);
  }

  // Waits for the batches under way; told is the last one's loss. False if it was told before.
  bool finish(batch_loss &told) {
    return hndl && count && tell(count - 1, hndl->sync_get_latest_loss(), told); // libvpps
  }

  // Where the matrices live, and why there.
  std::string plan() const { return hndl ? hndl->plan_report() : ""; } // libvpps

  // What training in one call is done with, and answers are asked for; NULL: DyNet's three.
  vpps::handle *handle() const { return hndl.get(); } // libvpps

  // Before DyNet's own execution is to see the trained values.
  void show_values() {
    if (hndl)
      hndl->pull(m); // libvpps
  }

  size_t done() const { return count; }

  // All that training goes on from, with bytes of the caller's own; and back.
  void save_checkpoint(const std::string &file, std::map<std::string, std::string> own) const {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << count;
    for (size_t n : terms)
      text << ' ' << n;
    own["updates"] = text.str();
    checkpoint().save(file, own); // libvpps
  }
  std::map<std::string, std::string> load_checkpoint(const std::string &file) {
    std::map<std::string, std::string> own = checkpoint().load(file); // libvpps
    std::istringstream text(own["updates"]);
    text.imbue(std::locale::classic());
    text >> count;
    for (size_t &n : terms)
      text >> n;
    return own;
  }

  double recording_seconds() const { return recording; } // of building graphs, so far

private:
#ifdef VPPS_BUNDLED_DYNET
  vpps::checkpoint checkpoint() const { return vpps::checkpoint(m, *trainer, hndl.get()); }
#else
  struct none {
    [[noreturn]] std::map<std::string, std::string> load(const std::string &) const { refuse(); }
    [[noreturn]] void save(const std::string &, const std::map<std::string, std::string> &) const {
      refuse();
    }
    [[noreturn]] static void refuse() {
      throw std::runtime_error("--checkpoint: an installed DyNet has none: compile against "
                               "libvpps's own headers");
    }
  };
  none checkpoint() const { return none(); }
#endif

  bool tell(size_t batch, double loss, batch_loss &told) const {
    told = {batch, loss, loss / double(terms[batch % told_late])};
    return true;
  }

  dynet::ParameterCollection &m;
  Model &model;
  std::unique_ptr<dynet::Trainer> trainer;
  std::unique_ptr<vpps::handle> hndl;
  enum { told_late = VPPS_FB_LAG + 1 };
  size_t count = 0,
         terms[told_late] = {}; // losses of a batch, from when it is trained until its loss is told
  double recording = 0;
};

#endif
