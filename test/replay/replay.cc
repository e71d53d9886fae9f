// Replays scripts on the CPU's processors without Go, so that the sanitizers see all of it:
// each file (persist/script/replay_test.go writes them) on one thread and on two, which must
// leave the same bits everywhere, and not those from before.
#include "host.h"
#include "isa.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

typedef std::vector<uint32_t> Words;

static Words contents(const char *path) {
  FILE *f = std::fopen(path, "rb");
  Words w;
  uint32_t x;
  while (f && std::fread(&x, sizeof x, 1, f) == 1)
    w.push_back(x);
  if (f)
    std::fclose(f);
  return w;
}

struct Replay {
  uint32_t processors, matrices;
  std::vector<vpps_matrix> matrix;
  Words first, first_block;
  std::vector<vpps_rows> parts;
  std::vector<vpps_block> blocks;
  Words script;
  std::vector<Words> segments;

  explicit Replay(const Words &file) {
    const uint32_t *at = file.data();
    processors = *at++;
    matrices = *at++;
    const uint32_t partitions = *at++, formed = *at++, words = *at++;
    for (uint32_t i = 0; i < matrices; i++, at += 3)
      matrix.push_back(vpps_matrix{at[0], at[1], at[2]});
    first = take(at, matrices * processors + 1);
    for (uint32_t i = 0; i < partitions; i++, at += 3)
      parts.push_back(vpps_rows{at[0], at[1], at[2]});
    first_block = take(at, matrices * processors + 1);
    for (uint32_t i = 0; i < formed; i++, at += 4)
      blocks.push_back(vpps_block{at[0], at[1], at[2], at[3]});
    script = take(at, words);
    for (int s = 0; s < SEGMENTS; s++) {
      const uint32_t n = *at++;
      segments.push_back(take(at, n));
    }
  }

  static Words take(const uint32_t *&at, uint32_t n) {
    at += n;
    return Words(at - n, at);
  }

  // Runs on copies of script and segments; leaves the segments in memory.
  int run(uint32_t threads, std::vector<Words> &memory) const {
    memory = segments;
    Words own = script;
    uint32_t status[16] = {0};
    std::vector<vpps_panels> panels(2 * matrices * processors);
    vpps_residency residency = {processors,         matrices,     matrix.data(), first.data(),
                                first_block.data(), parts.data(), blocks.data(), nullptr,
                                panels.data(),      nullptr};
    std::vector<float> floats(vpps_cpu_place_operands(&residency, nullptr));
    vpps_cpu_place_operands(&residency, floats.data());
    // Of doubles, for the alignment.
    std::vector<double> state(processors * vpps_cpu_state_bytes() / sizeof(double) + 1);
    vpps_launch launch;
    std::memset(&launch, 0, sizeof launch);
    for (int s = 0; s < SEGMENTS; s++)
      launch.segment[s] = reinterpret_cast<float *>(memory[s].data());
    launch.segment[SEG_INPUT] = reinterpret_cast<float *>(own.data() + own[HEAD_INPUTS]);
    launch.script = own.data();
    launch.status = status;
    launch.batch = 1;
    launch.wait_seconds = 60;
    launch.residency = &residency;
    launch.processors = state.data();
    vpps_cpu_begin(&launch);
    std::vector<std::thread> others;
    for (uint32_t t = 1; t < threads; t++)
      others.emplace_back([&launch, t, threads] { vpps_cpu_run(&launch, t, threads); });
    vpps_cpu_run(&launch, 0, threads);
    for (std::thread &t : others)
      t.join();
    return (int)launch.stopped[STOP_CODE];
  }
};

int main(int argc, char **argv) {
  int failed = argc < 2;
  for (int i = 1; i < argc; i++) {
    const Words file = contents(argv[i]);
    if (file.empty()) {
      std::printf("%s: cannot be read\n", argv[i]);
      failed++;
      continue;
    }
    const Replay replay(file);
    std::vector<Words> one, two;
    const int error1 = replay.run(1, one), error2 = replay.run(2, two);
    if (error1 || error2 || one != two || one == replay.segments) {
      std::printf("%s: errors %d and %d, %s\n", argv[i], error1, error2,
                  one != two ? "two threads leave other bits than one" : "nothing has changed");
      failed++;
    }
  }
  std::printf("%d scripts on one and two threads, %d failed\n", argc - 1, failed);
  return failed != 0;
}
