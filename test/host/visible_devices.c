/* CUDA_VISIBLE_DEVICES selects and renumbers devices for the library as for every CUDA program:
 * what the driver counts from 0 is cuda:0. With none visible "auto" is the CPU. */
#include "again.h"
#include "cuda_user.h"
#include "host.h"

/* The name and number of devices that the driver shows. */
static int devices(char names[8][100]) {
  int count = 0;
  CHECK(cuda.cuDeviceGetCount(&count) == 0);
  for (int k = 0; k < count && k < 8; k++) {
    CUdevice d;
    CHECK(cuda.cuDeviceGet(&d, k) == 0 && cuda.cuDeviceGetName(names[k], 100, d) == 0);
  }
  return count;
}

static void open_device(const char *device, vpps_engine **engine, char *text) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  options.device = device;
  CHECK(vpps_engine_open(&options, engine) == VPPS_OK);
  CHECK(vpps_engine_describe(*engine, text, 256) == VPPS_OK);
}

/* Every visible device is cuda:k under the driver's number, and one more is an error. */
static void all_open(void) {
  char names[8][100], device[16], text[256];
  vpps_engine *engine;
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  int count = devices(names);
  for (int k = 0; k < count && k < 8; k++) {
    snprintf(device, sizeof device, "cuda:%d", k);
    open_device(device, &engine, text);
    CHECK(strncmp(text, device, strlen(device)) == 0);
    CHECK(strncmp(strstr(text, ": ") + 2, names[k], strlen(names[k])) == 0);
    vpps_engine_close(engine);
  }
  snprintf(device, sizeof device, "cuda:%d", count);
  options.device = device;
  FAILS(VPPS_ERR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES", vpps_engine_open(&options, &engine));
  options.device = "cuda:1x";
  FAILS(VPPS_ERR_ARGUMENT, "cuda:N", vpps_engine_open(&options, &engine));
  unsetenv("VPPS_DEVICE");
  all_is_well(open_model());
}

static void none_visible(void) {
  char text[256];
  vpps_engine *engine;
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  options.device = "cuda";
  FAILS(VPPS_ERR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES", vpps_engine_open(&options, &engine));
  open_device("auto", &engine, text);
  CHECK(strncmp(text, "cpu: ", 5) == 0);
  CHECK(strchr(text, ';') == NULL); /* that is what was asked for: no reason is given */
  unsetenv("VPPS_DEVICE");
  all_is_well(open_model());
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "none") == 0) {
    none_visible();
    return 0;
  }
  find_cuda();
  all_open();
  if (argc > 1)
    return 0;
  again(argv[0], "some", "CUDA_VISIBLE_DEVICES", "0");
  again(argv[0], "none", "CUDA_VISIBLE_DEVICES", "");
  again(argv[0], "none", "CUDA_VISIBLE_DEVICES", "-1");
  {
    char names[8][100];
    if (devices(names) > 1) {
      again(argv[0], "some", "CUDA_VISIBLE_DEVICES", "1");
      again(argv[0], "some", "CUDA_VISIBLE_DEVICES", "1,0");
    }
  }
  return 0;
}
