/* vpps-info: what libvpps finds on this machine, which device a program gets, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vpps.h>

static int failed(void) {
  fprintf(stderr, "vpps-info: %s\n", vpps_last_error());
  return 1;
}

int main(int argc, char **argv) {
  size_t size = 0;
  char *text;
  if (argc > 1) {
    int asked = !strcmp(argv[1], "--help");
    fprintf(asked ? stdout : stderr,
            "usage: vpps-info\n"
            "Prints what libvpps finds on this machine: GPUs, driver, NVRTC, the folder of\n"
            "compiled kernels, and the device that a program gets which names none.\n");
    return asked ? 0 : 2;
  }
  printf("libvpps:   %s, %s\n", vpps_version(), vpps_build_info());
  if (vpps_system_report(NULL, 0, &size))
    return failed();
  size += 4096; /* the second report may be longer: free memory, the cache */
  text = malloc(size);
  if (!text) {
    fprintf(stderr, "vpps-info: no memory\n");
    return 1;
  }
  if (vpps_system_report(text, size, NULL))
    return failed();
  fputs(text, stdout);
  free(text);
  return fflush(stdout) ? 1 : 0;
}
