// Parameters without a device: names, initial distributions, host copies, the text
// format; and dims, dictionaries, tensors and flags.
#include <vpps/vpps.hpp>

#include "fake_engine.h"

#include "check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "dynet/dict.h"
#include "dynet/dynet.h"
#include "dynet/io.h"

using namespace dynet;

template <class T> static std::string text(const T &x) {
  std::ostringstream s;
  s << x;
  return s.str();
}

TEST(dims) {
  Dim a({3, 4}), b({3, 4}, 2);
  EQUAL(a, "{3,4}");
  EQUAL(b, "{3,4X2}");
  EQUAL(Dim(), "{}");
  EQUAL(text(std::vector<Dim>{Dim({2}), Dim({3})}), "[{2} {3}]");
  EQUAL(b.size(), 24u);
  EQUAL(b.batch_size(), 12u);
  CHECK(a != b && b.single_batch() == a && Dim({3}) != Dim({3, 1}));
  EQUAL(Dim({3, 1, 1}).truncate(), "{3}");
  EQUAL(Dim({1, 1}).truncate(), "{1}");
  EQUAL(a.transpose(), "{4,3}");
  EQUAL(Dim({5}).transpose(), "{1,5}");
  EQUAL(a.rows(), 3u);
  EQUAL(Dim({3}).cols(), 1u);
  EQUAL(a[7], 1u);
  Dim d({2, 3, 4}, 5);
  d.delete_dims({2, 0}, true);
  EQUAL(d, "{3}");
  d.delete_dim(0);
  EQUAL(d, "{1}");
  d.insert_dim(0, 6);
  EQUAL(d, "{6,1}");
  EQUAL(d.num_nonone_dims(), 1u);
  EQUAL(a.sum_dims(), 7u);
  THROWS(std::invalid_argument, "7", Dim({1, 1, 1, 1, 1, 1, 1, 1}));
  THROWS(std::invalid_argument, "", a.set(3, 2));
  for (const char *s : {"{3,4}", "{3,4X2}", "{}", "{7}"}) {
    std::istringstream in(s);
    Dim r;
    in >> r;
    EQUAL(r, s);
  }
}

TEST(names) {
  ParameterCollection m;
  EQUAL(m.get_fullname(), "/");
  EQUAL(m.add_parameters({1}).get_fullname(), "/_0");
  EQUAL(m.add_lookup_parameters(2, {1}).get_fullname(), "/_1"); // one counter for both
  EQUAL(m.add_parameters({1}, "x").get_fullname(), "/x");
  EQUAL(m.add_parameters({1}, 0, "x").get_fullname(), "/x_1");
  ParameterCollection sub = m.add_subcollection("sub"), sub2 = m.add_subcollection("sub");
  EQUAL(sub.get_fullname(), "/sub/");
  EQUAL(sub2.get_fullname(), "/sub_1/");
  EQUAL(m.add_subcollection().get_fullname(), "/_0/");
  Parameter p = sub.add_parameters({2, 2}, "W");
  EQUAL(p.get_fullname(), "/sub/W");
  CHECK(m.get_parameter_storage("/sub/W") == p.p && sub.get_parameter_storage("/sub/W") == p.p);
  THROWS(std::runtime_error, "/nowhere", m.get_parameter_storage("/nowhere"));
  THROWS(std::runtime_error, "a/b", m.add_parameters({1}, "a/b"));
  THROWS(std::runtime_error, "a_b", m.add_subcollection("a_b"));
  EQUAL(m.size(), 4u);
  EQUAL(sub.size(), 1u);
  EQUAL(m.parameter_count(), 1u + 2 + 1 + 1 + 4);
  p.set_updated(false);
  EQUAL(m.updated_parameter_count(), 5u);
}

// Draws n values and compares mean, spread and range.
static void distribution(const ParameterInit &init, const Dim &d, double mean, double deviation,
                         double least, double most) {
  std::vector<float> v(d.size());
  Tensor t(d, v.data(), nullptr, DeviceMempool::NONE);
  init.initialize_params(t);
  double sum = 0, squares = 0;
  for (float x : v) {
    CHECK(x >= least && x <= most);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  double n = static_cast<double>(v.size()), m = sum / n;
  CHECK(std::abs(m - mean) < 5 * deviation / std::sqrt(n) + 1e-9);
  CHECK(std::abs(std::sqrt(squares / n - m * m) - deviation) < 0.02 * deviation + 1e-9);
}

static void uniform(const ParameterInit &init, const Dim &d, double s) {
  distribution(init, d, 0, s / std::sqrt(3.), -s * 1.0001, s * 1.0001);
}

TEST(initial_values) {
  distribution(ParameterInitNormal(0.5f, 0.04f), {300, 200}, 0.5, 0.2, -9, 9);
  distribution(ParameterInitUniform(-0.1f, 0.4f), {300, 200}, 0.15, 0.5 / std::sqrt(12.), -.1, .4);
  uniform(ParameterInitUniform(0.3f), {300, 200}, 0.3);
  distribution(ParameterInitConst(0.5f), {300, 200}, 0.5, 0, 0.5, 0.5);
  uniform(ParameterInitGlorot(), {300, 200}, std::sqrt(6. / 500));
  uniform(ParameterInitGlorot(false, 2), {300, 200}, 2 * std::sqrt(6. / 500));
  uniform(ParameterInitGlorot(), {60000}, std::sqrt(3. / 60000));
  uniform(ParameterInitGlorot(), {30, 40, 50}, std::sqrt(9. / 120));
  uniform(ParameterInitGlorot(), {5, 5, 12, 200}, std::sqrt(6. / (25 * 212)));
  uniform(ParameterInitGlorot(true), {30, 2000}, std::sqrt(3. / 30));
  THROWS(std::domain_error, "empty", ParameterInitUniform(1, 1));
  ParameterCollection m;
  THROWS(std::runtime_error, "square", m.add_parameters({2, 3}, ParameterInitIdentity()));
  Parameter i = m.add_parameters({2, 2}, ParameterInitIdentity());
  CHECK(i.p.unexposed()->read(VPPS_VALUES) == std::vector<float>({1, 0, 0, 1}));
  Parameter f = m.add_parameters({2}, ParameterInitFromVector({3, 4}));
  CHECK(f.p.unexposed()->read(VPPS_VALUES) == std::vector<float>({3, 4}));
  THROWS(std::invalid_argument, "values", m.add_parameters({3}, ParameterInitFromVector({3, 4})));
  std::vector<float> q =
      m.add_parameters({20, 20}, ParameterInitSaxe(2)).p.unexposed()->read(VPPS_VALUES);
  for (size_t a = 0; a < 20; ++a)
    for (size_t b = 0; b < 20; ++b) {
      float dot = 0;
      for (size_t k = 0; k < 20; ++k)
        dot += q[a * 20 + k] * q[b * 20 + k];
      CHECK(std::abs(dot - (a == b ? 4 : 0)) < 1e-4);
    }
}

TEST(values_come_from_rndeng_in_order_of_creation) {
  reset_rng(7);
  std::mt19937 same(7);
  ParameterCollection m;
  float s = std::sqrt(6.f) / std::sqrt(5.f);
  for (int k = 0; k < 2; ++k) {
    std::uniform_real_distribution<float> u(-s, s);
    for (float x : m.add_parameters({2, 3}).p.unexposed()->read(VPPS_VALUES))
      EQUAL(x, u(same));
  }
}

TEST(host_copies_are_made_when_asked_for) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  LookupParameter E = m.add_lookup_parameters(3, {2}, ParameterInitConst(2));
  int before = state.exposed;
  p.p.unexposed()->read(VPPS_VALUES);
  EQUAL(p.current_weight_decay(), 1.f);
  EQUAL(state.exposed, before);
  Tensor *v = p.values();
  EQUAL(state.exposed, before + 1);
  CHECK(v->d == Dim({2}) && v->v[1] == 1);
  TensorTools::set_elements(p.get_storage().values, {5, 6});
  EQUAL(p.p.unexposed()->read(VPPS_VALUES)[1], 6.f);
  EQUAL(state.exposed, before + 2); // both parts of a storage
  p.p->name.size();
  EQUAL(state.exposed, before + 2);
  CHECK(m.parameters_list().size() == 1 && m.lookup_parameters_list()[0] == E.p);
  EQUAL(state.exposed, before + 4);
  CHECK(E.p->grads.size() == 3 && E.p->grads[2].v == E.p->all_grads.v + 4);
  CHECK(E.values()->size() == 3 && (*E.values())[2].v == E.get_storage().all_values.v + 4);
  E.initialize(1, {8, 9});
  EQUAL(as_vector((*E.values())[1])[1], 9.f);
  THROWS(std::invalid_argument, "row", E.initialize(3, {8, 9}));
  THROWS(std::invalid_argument, "values", E.initialize(0, {8}));
  p.scale(2);
  EQUAL(p.p.unexposed()->read(VPPS_VALUES)[0], 10.f);
  p.clip_inplace(-1, 1);
  EQUAL(p.p.unexposed()->read(VPPS_VALUES)[0], 1.f);
  p.set_value({3, 4});
  EQUAL(as_vector(*p.values())[0], 3.f);
  p.zero();
  EQUAL(as_vector(*p.values())[0], 0.f);
}

static std::string contents(const std::string &file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

TEST(text_files) {
  const char *dir = std::getenv("TMPDIR");
  std::string file = std::string(dir ? dir : "/tmp") + "/fake_parameters.model";
  ParameterCollection m;
  Parameter w = m.add_parameters({2, 2}, ParameterInitFromVector({1, -2, 3.5f, 1e-10f}), "w");
  LookupParameter e = m.add_lookup_parameters(2, {2}, ParameterInitFromVector({1, 2, 3, 4}), "e");
  std::vector<float> g{-1040.78992f, 0, 0, 1};
  e.p.unexposed()->write(VPPS_GRADIENT, 0, g.data(), 4);
  e.p.unexposed()->nonzero_grad = true;
  { TextFileSaver(file).save(m); }
  EQUAL(contents(file), "#Parameter# /w {2,2} 65 ZERO_GRAD\n"
                        "+1.00000000e+00 -2.00000000e+00 +3.50000000e+00 +1.00000001e-10 \n"
                        "#LookupParameter# /e {2,2} 130 FULL_GRAD\n"
                        "+1.00000000e+00 +2.00000000e+00 +3.00000000e+00 +4.00000000e+00 \n"
                        "-1.04078992e+03 +0.00000000e+00 +0.00000000e+00 +1.00000000e+00 \n");
  w.zero();
  { TextFileLoader(file).populate(m); }
  EQUAL(w.p.unexposed()->read(VPPS_VALUES)[2], 3.5f);

  // With a key, which replaces the collection's own name; and the weight decay factor.
  ParameterCollection sub = m.add_subcollection("sub");
  Parameter s = sub.add_parameters({1}, ParameterInitConst(2), "s");
  state.weight_decay = 0.5f;
  { TextFileSaver(file).save(sub, "/key"); }
  state.weight_decay = 1;
  EQUAL(contents(file), "#Parameter# /key/s {1} 17 ZERO_GRAD\n+1.00000000e+00 \n");
  { TextFileSaver(file, true).save(e, "/table"); }
  ParameterCollection other;
  LookupParameter copy = TextFileLoader(file).load_lookup_param(other, "/table");
  CHECK(copy.p.unexposed()->read(VPPS_VALUES) == std::vector<float>({1, 2, 3, 4}));
  EQUAL(copy.dim(), "{2}");
  EQUAL(TextFileLoader(file).load_param(other, "/key/s").dim(), "{1}");
  TextFileLoader(file).populate(sub, "/key");
  EQUAL(s.p.unexposed()->read(VPPS_VALUES)[0], 1.f);

  THROWS(std::runtime_error, "/absent", TextFileLoader(file).load_param(other, "/absent"));
  THROWS(std::runtime_error, "Too many", TextFileLoader(file).populate(sub));
  ParameterCollection two;
  two.add_parameters({1}), two.add_parameters({1});
  THROWS(std::runtime_error, "has 1 parameters", TextFileLoader(file).populate(two, "/key"));
  ParameterCollection wrong;
  wrong.add_parameters({2});
  THROWS(std::runtime_error, "Dimensions", TextFileLoader(file).populate(wrong, "/key"));
  THROWS(std::invalid_argument, "begin with", TextFileSaver(file).save(m, "key"));
  THROWS(std::runtime_error, "cannot read", TextFileLoader("/nowhere/x").populate(m));
  THROWS(std::runtime_error, "cannot write /nowhere/x", TextFileSaver("/nowhere/x"));
  std::ofstream(file) << "#Parameter# /w {2,2} 65 ZERO_GRAD\n1 2 three\n";
  THROWS(std::runtime_error, "damaged", TextFileLoader(file).populate(m));

  // A collection's full name is a key that ends with '/'.
  { TextFileSaver(file).save(sub, sub.get_fullname()); }
  EQUAL(contents(file), "#Parameter# /sub/s {1} 17 ZERO_GRAD\n+1.00000000e+00 \n");
  { TextFileSaver(file).save(m); }
  ParameterCollection alone;
  Parameter a = alone.add_parameters({1}, ParameterInitConst(5));
  TextFileLoader(file).populate(alone, sub.get_fullname());
  EQUAL(a.p.unexposed()->read(VPPS_VALUES)[0], 1.f);
  std::remove(file.c_str());
}

TEST(dictionaries) {
  Dict d;
  EQUAL(d.convert("a"), 0);
  EQUAL(d.convert("b"), 1);
  EQUAL(d.convert("a"), 0);
  EQUAL(d.convert(1), "b");
  EQUAL(d.get_unk_id(), -1);
  THROWS(std::runtime_error, "freeze", d.set_unk("<unk>"));
  CHECK(read_sentence("a  b c", d) == std::vector<int>({0, 1, 2}));
  d.freeze();
  THROWS(std::runtime_error, "Unknown word", d.convert("z"));
  d.set_unk("<unk>");
  EQUAL(d.convert("z"), 3);
  EQUAL(d.size(), 4u);
  CHECK(d.is_frozen() && d.contains("c") && !d.contains("z"));
  THROWS(std::runtime_error, "already", d.set_unk("z"));
  THROWS(std::invalid_argument, "7", d.convert(7));
  Dict s, t;
  std::vector<int> a, b;
  read_sentence_pair("x y ||| u", a, s, b, t);
  CHECK(a.size() == 2 && b.size() == 1 && t.contains("u"));
}

TEST(tensors) {
  std::vector<float> v{1, 2, 3, 4, 5, 6};
  Tensor t(Dim({2, 3}), v.data(), nullptr, DeviceMempool::NONE);
  EQUAL(t, "1 3 5\n2 4 6");
  EQUAL(as_vector(TensorTools::argmax(t, 1)).at(1), 2);
  EQUAL(as_vector(TensorTools::argmax(t, 0)).at(2), 1);
  Tensor batch(Dim({2}, 3), v.data(), nullptr, DeviceMempool::NONE);
  EQUAL(batch.batch_elem(1), "3\n4");
  EQUAL(batch.batch_elems().size(), 3u);
  EQUAL(batch.batch_ptr(2)[0], 5.f);
  THROWS(std::runtime_error, "batch", text(batch));
  THROWS(std::runtime_error, "6 elements", as_scalar(t));
  TensorTools::scale(t, 2, 1);
  EQUAL(v[5], 13.f);
  EQUAL(TensorTools::access_element(t, Dim({1, 2})), 13.f);
  v[0] = std::nanf("");
  CHECK(!t.is_valid());
}

TEST(flags) {
  const char *words[] = {"program",
                         "--dynet-seed",
                         "5",
                         "data",
                         "--dynet_weight_decay=0.25",
                         "--vpps-device",
                         "cpu",
                         "--other",
                         "--dynet-mem",
                         "1024",
                         "--vpps-log=debug",
                         "--vpps_profile",
                         "1",
                         "--vpps-data-parallel",
                         "more",
                         nullptr};
  std::vector<char *> argv;
  for (const char *w : words)
    argv.push_back(const_cast<char *>(w));
  int argc = 15;
  char **p = argv.data();
  DynetParams params = extract_dynet_params(argc, p);
  EQUAL(argc, 4);
  EQUAL(p[1], "data");
  EQUAL(p[2], "--other");
  EQUAL(p[3], "more");
  CHECK(p[4] == nullptr);
  EQUAL(params.random_seed, 5u);
  EQUAL(params.weight_decay, 0.25f);
  EQUAL(params.vpps_device, "cpu");
  EQUAL(params.mem_descriptor, "1024");
  EQUAL(params.vpps_log, static_cast<int>(VPPS_LOG_DEBUG));
  CHECK(params.vpps_profile);
  CHECK(params.vpps_data_parallel);
  CHECK(!DynetParams().vpps_data_parallel);
  EQUAL(DynetParams().vpps_log, -1);
  const char *bad[] = {"program", "--dynet-weight-decay=2", nullptr};
  std::vector<char *> bad_argv{const_cast<char *>(bad[0]), const_cast<char *>(bad[1]), nullptr};
  argc = 2;
  p = bad_argv.data();
  THROWS(std::invalid_argument, "below 1", extract_dynet_params(argc, p));
  const char *level[] = {"program", "--vpps-log=loud", nullptr};
  std::vector<char *> level_argv{const_cast<char *>(level[0]), const_cast<char *>(level[1]),
                                 nullptr};
  argc = 2;
  p = level_argv.data();
  THROWS(std::invalid_argument, "off, info or debug", extract_dynet_params(argc, p));
}

// What extract_dynet_params writes to standard error, of one flag.
static std::string said(const char *flag, const char *another = nullptr) {
  char *words[] = {const_cast<char *>("program"), const_cast<char *>(flag),
                   const_cast<char *>(another), nullptr};
  char **p = words;
  int argc = another ? 3 : 2;
  const std::string text = tests::printed(std::cerr, [&] { extract_dynet_params(argc, p); });
  EQUAL(argc, text.empty() && std::string(flag).compare(0, 7, "--other") != 0 ? 1 : 2);
  return text;
}

TEST(unknown_flags_that_look_like_ours_are_said) {
  CHECK(said("--vpps-devise=cpu").find("no flag --vpps-devise") != std::string::npos);
  CHECK(said("--dynet_sed=1").find("no flag --dynet-sed") != std::string::npos);
  EQUAL(said("--other-dynet-flag"), "");
  EQUAL(said("--dynet-mem=1024"), "");
  EQUAL(said("--vpps-data-parallel=0"), "");
  THROWS(std::invalid_argument, "from 0 to 1", said("--vpps-data-parallel=2"));
  THROWS(std::invalid_argument, "one of them", said("--dynet-gpus=1", "--dynet-devices=CPU"));
}

TEST(parameters_need_initialize) {
  cleanup();
  ParameterCollection m;
  THROWS(std::invalid_argument, "initialize", m.add_parameters({1}));
  DynetParams again;
  again.random_seed = 3;
  initialize(again);
  m.add_parameters({1});
  EQUAL(state.seed, 3u);
}

TEST(ranks_draw_the_same_numbers_but_those_of_graphs) {
  cleanup();
  state.rank = 2, state.ranks = 3, state.seed_of_rank_0 = 77;
  DynetParams params;
  params.random_seed = 3;
  params.vpps_data_parallel = true;
  state.fail_next = VPPS_ERR_RANK;
  THROWS(std::runtime_error, "asked to fail", initialize(params));
  THROWS(std::invalid_argument, "initialize", engine("a test"));
  initialize(params);
  CHECK(state.attached);
  EQUAL(engine("a test")->rank, 2u);
  EQUAL(engine("a test")->ranks, 3u);
  EQUAL(state.seed, 77u + 2);
  EQUAL((*rndeng)(), std::mt19937(77)());
  cleanup();
  state.rank = 0, state.ranks = 1;
  initialize(params); // alone
  EQUAL(state.seed, 3u);
  int mine = 5;
  vpps::broadcast(mine);
  EQUAL(mine, 5);
  THROWS(std::invalid_argument, "a broadcast from rank 1 of 1", vpps::broadcast(mine, 1));
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
