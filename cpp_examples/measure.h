// Measures an application instead of training it to an end (--measure): for each batch size one
// row, of training and of answering without training. Every number is the median over windows of
// equal length; beside the rates are the slowest and the fastest window. A row is printed as a
// line of a table, or with --csv as CSV that has more columns.
//
// The rate of answering is that of a stream of graphs: in one call (vpps) two are recorded before
// the answer to the first is fetched. The time of an answer is that of a graph which is awaited.
//
// The columns in ns are per graph node: record is the program's own thread building the graph;
// decode and schedule are the library's. In one call (vpps) they overlap with each other and with
// the device, so they do not add up to the rate. Columns in us are per batch; from start to idle
// they are the mean of the device's processors, with VPPS_PROFILE=1 only, and add up to the
// kernel's time.
//
// Several ranks train batches of this size each; the rate is that of all, other columns rank 0's.
#ifndef VPPS_EXAMPLES_MEASURE_H
#define VPPS_EXAMPLES_MEASURE_H

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "answers.h"
#include "options.h"
#include "ranks.h"
#include "updates.h"
#include "windows.h"

template <class Model> class measurement {
public:
  typedef typename Model::corpus corpus;

  measurement(const options &o, dynet::ParameterCollection &m, Model &model, const corpus &data)
      : o(o), model(model), sentences(data.train), update(o, m, model), ranks(m) {
    std::mt19937 random(o.seed);
    std::shuffle(sentences.begin(), sentences.end(), random);
  }

  // Prints the head and a row for each batch size.
  void run() {
    if (o.csv)
      print_csv_head();
    else
      print_table_head();
    for (unsigned size : o.batch_sizes) {
      batch_size = size;
      train(o.measure / 4); // the warm-up
      const std::vector<window> trained =
          measure_windows(o.measure, 5, [this](double seconds) { return train(seconds); });
      update.show_values();
      answer_for(o.measure / 8, 2);
      const std::vector<answered> stream = measure_windows(
          o.measure / 4, 5, [this](double seconds) { return answer_for(seconds, 2); });
      const std::vector<answered> awaited = measure_windows(
          o.measure / 4, 5, [this](double seconds) { return answer_for(seconds, 0); });
      const row r = row_of(trained, stream, awaited);
      if (o.csv)
        print_csv(r);
      else
        print_table(r);
      std::fflush(stdout);
    }
  }

private:
  // What a window of training has seen.
  struct window {
    double seconds = 0, batches = 0, sentences = 0, recording = 0;
    vpps_statistics before, after;
    vpps_times times_before, times_after;
    double us(uint64_t vpps_times::*field) const {
      return 1e-3 * double(times_after.*field - times_before.*field) / batches;
    }
    double mean_us(vpps_part_time vpps_times::*part) const {
      return 1e-3 * double((times_after.*part).mean_ns - (times_before.*part).mean_ns) / batches;
    }
    double max_us(vpps_part_time vpps_times::*part) const {
      return 1e-3 * double((times_after.*part).max_ns - (times_before.*part).max_ns) / batches;
    }
    double since(uint64_t vpps_statistics::*field) const {
      return double(after.*field - before.*field);
    }
    double per_node(double total) const {
      return total / std::max(since(&vpps_statistics::nodes), 1.0);
    }
  };

  // A column besides the rate. What the library counts about its phases belongs here.
  struct column {
    const char *name;
    double (*of)(const window &);
  };
  static std::vector<column> columns() {
    typedef vpps_statistics s;
    typedef vpps_times t;
    return {
        {"nodes_per_batch", [](const window &w) { return w.since(&s::nodes) / w.batches; }},
        {"record_ns_per_node", [](const window &w) { return w.per_node(1e9 * w.recording); }},
        {"decode_ns_per_node", [](const window &w) { return w.per_node(w.since(&s::decode_ns)); }},
        {"schedule_ns_per_node",
         [](const window &w) { return w.per_node(w.since(&s::schedule_ns)); }},
        {"plan_us_per_batch",
         [](const window &w) { return 1e-3 * w.since(&s::plan_ns) / w.batches; }},
        {"device_us_per_batch",
         [](const window &w) { return 1e-3 * w.since(&s::execute_ns) / w.batches; }},
        {"launches_per_batch", [](const window &w) { return w.since(&s::launches) / w.batches; }},
        {"copies_per_batch",
         [](const window &w) { return w.since(&s::copies_to_device) / w.batches; }},
        {"script_words", [](const window &w) { return double(w.after.script_words); }},
        {"launch_us", [](const window &w) { return w.us(&t::launch_ns); }},
        {"wait_us", [](const window &w) { return w.us(&t::wait_ns); }},
        {"copy_us", [](const window &w) { return w.us(&t::copy_ns); }},
        {"kernel_us", [](const window &w) { return w.us(&t::kernel_ns); }},
        {"start_us", [](const window &w) { return w.mean_us(&t::start); }},
        {"forward_us", [](const window &w) { return w.mean_us(&t::forward); }},
        {"backward_us", [](const window &w) { return w.mean_us(&t::backward); }},
        {"gradients_us", [](const window &w) { return w.mean_us(&t::gradients); }},
        {"update_us", [](const window &w) { return w.mean_us(&t::update); }},
        {"fetch_us", [](const window &w) { return w.mean_us(&t::fetch); }},
        {"waiting_us", [](const window &w) { return w.mean_us(&t::waiting); }},
        {"idle_us", [](const window &w) { return w.mean_us(&t::idle); }},
        {"busiest_us", [](const window &w) { return w.max_us(&t::busy); }},
        {"loaded_bytes", [](const window &w) { return 1e3 * w.us(&t::loaded_bytes); }},
        {"updated_bytes", [](const window &w) { return 1e3 * w.us(&t::updated_bytes); }},
        {"streamed_bytes", [](const window &w) { return 1e3 * w.us(&t::streamed_bytes); }},
    };
  }

  struct answered {
    double rate;
    std::vector<double> seconds; // of each graph
  };

  // Trains for some seconds, at least two batches.
  window train(double seconds) {
    window w;
    w.before = vpps::statistics();
    w.times_before = vpps::times();
    w.recording = -update.recording_seconds();
    const stopwatch clock;
    batch_loss told;
    double more =
        seconds * batches_per_second; // by rank 0's clock. Ranks that agree wait for their batches
    for (take_from_rank_0(more); more > 0; take_from_rank_0(more)) {
      const double all = w.batches + std::max(1.0, std::floor(more));
      while (w.batches < all) {
        batch.clear();
        for (size_t k = 0; k < batch_size; k++)
          batch.push_back(&sentences[(next++ * ranks.size() + ranks.rank()) % sentences.size()]);
        update.train(batch, told);
        w.batches++;
      }
      more = (seconds / clock.seconds() - 1) * w.batches;
      if (w.batches < 2)
        more = std::max(1.0, more);
    }
    update.finish(told);
    w.seconds = clock.seconds();
    batches_per_second = w.batches / w.seconds;
    w.sentences = w.batches * double(batch_size) * ranks.size();
    w.recording += update.recording_seconds();
    w.after = vpps::statistics();
    w.times_after = vpps::times();
    return w;
  }

  // Answers for some seconds, at least one batch; so many graphs are ahead of the answers.
  answered answer_for(double seconds, size_t ahead) {
    answers all;
    questions<Model> asked(model, all, update.handle(), ahead);
    const stopwatch clock;
    do {
      if (next_asked + batch_size > sentences.size())
        next_asked = 0;
      const size_t last = std::min(sentences.size(), next_asked + batch_size);
      asked.ask(sentences, next_asked, last);
      next_asked = last;
    } while (clock.seconds() < seconds);
    asked.finish();
    return {double(all.seconds.size() * batch_size) / clock.seconds(), all.seconds};
  }

  template <class Of> static spread over(const std::vector<window> &windows, Of of) {
    std::vector<double> values;
    values.reserve(windows.size());
    for (const window &w : windows)
      values.push_back(of(w));
    return spread_of(values);
  }

  // What is measured at one batch size.
  struct row {
    size_t windows;
    spread rate, forward;       // sentences a second
    double forward_ms, ms_99;   // of an answer: the median, and what 99 % need at most
    std::vector<double> others; // of columns()
  };

  static row row_of(const std::vector<window> &trained, const std::vector<answered> &stream,
                    const std::vector<answered> &awaited) {
    row r;
    r.windows = trained.size();
    r.rate = over(trained, [](const window &w) { return w.sentences / w.seconds; });
    for (const column &c : columns())
      r.others.push_back(over(trained, c.of).median);
    std::vector<double> rates, ms;
    for (const answered &a : stream)
      rates.push_back(a.rate);
    for (const answered &a : awaited)
      for (double s : a.seconds)
        ms.push_back(1e3 * s);
    std::sort(ms.begin(), ms.end());
    r.forward = spread_of(rates);
    r.forward_ms = ms[ms.size() / 2];
    r.ms_99 = ms[ms.size() * 99 / 100];
    return r;
  }

  // ---- CSV: every number

  static void print_csv_head() {
    std::printf(
        "app,mode,device,trainer,hidden,embed,batch,windows,sentences_per_s,slowest,fastest");
    for (const column &c : columns())
      std::printf(",%s", c.name);
    std::printf(",forward_sentences_per_s,forward_slowest,forward_fastest,forward_ms,"
                "forward_ms_99\n");
  }

  void print_csv(const row &r) const {
    std::printf("%s,%s,\"%s\",%s,%u,%u,%zu,%zu,%.1f,%.1f,%.1f", o.program.c_str(), o.mode.c_str(),
                vpps::device().c_str(), o.trainer.c_str(), o.hidden, o.embed, batch_size, r.windows,
                r.rate.median, r.rate.least, r.rate.most);
    for (double x : r.others)
      std::printf(",%.1f", x);
    std::printf(",%.1f,%.1f,%.1f,%.4f,%.4f\n", r.forward.median, r.forward.least, r.forward.most,
                r.forward_ms, r.ms_99);
  }

  // ---- a table: what people ask first

  // Where the time goes: columns of the table beside the rates.
  struct shown {
    const char *column, *title, *unit;
  };
  static std::vector<shown> shown_columns() {
    return {{"record_ns_per_node", "graph", "ns/node"},
            {"schedule_ns_per_node", "script", "ns/node"},
            {"device_us_per_batch", "device", "us/batch"}};
  }

  void print_table_head() const {
    std::printf("%s: hidden states of %u, embeddings of %u, trainer %s, mode %s\n%s\n\n",
                o.program.c_str(), o.hidden, o.embed, o.trainer.c_str(), o.mode.c_str(),
                vpps::device().c_str());
    std::printf("batch training  slowest ..  fastest answering  answer    99 %%");
    for (const shown &s : shown_columns())
      std::printf(" %8s", s.title);
    std::printf("\n       sent./s  sent./s     sent./s   sent./s      ms      ms");
    for (const shown &s : shown_columns())
      std::printf(" %8s", s.unit);
    std::printf("\n");
  }

  void print_table(const row &r) const {
    std::printf("%5zu %8.0f %8.0f .. %8.0f %9.0f %7.2f %7.2f", batch_size, r.rate.median,
                r.rate.least, r.rate.most, r.forward.median, r.forward_ms, r.ms_99);
    const std::vector<column> all = columns();
    for (const shown &s : shown_columns())
      for (size_t k = 0; k < all.size(); k++)
        if (std::string(all[k].name) == s.column)
          std::printf(" %8.0f", r.others[k]);
    std::printf("\n");
  }

  const options &o;
  Model &model;
  std::vector<typename corpus::sentence> sentences;
  updates<Model> update;
  rank_of_all ranks;
  double batches_per_second = 1e-3; // in the last window; before the first nobody knows
  std::vector<const typename corpus::sentence *> batch;
  size_t batch_size = 1, next = 0, next_asked = 0;
};

#endif
