// A program whose other files have chosen an installed DyNet hears of it at its first call.
#include "check.h"
#include "dynet/init.h"
#include "vpps.h"

TEST(the_second_front_end_is_refused) {
  int argc = 1;
  char name[] = "program", *arguments[] = {name, nullptr}, **argv = arguments;
  CHECK(vpps_frontend(VPPS_FRONTEND_INSTALLED) == VPPS_OK);
  THROWS(std::runtime_error, "first an installed DyNet, now libvpps's own DyNet headers",
         dynet::initialize(argc, argv));
}

int main() { return tests::run_tests(); }
