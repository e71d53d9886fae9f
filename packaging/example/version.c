/* The smallest program in C that uses an installed libvpps. */
#include <stdio.h>
#include <vpps.h>

int main(void) {
  printf("libvpps %s\n", vpps_version());
  return 0;
}
