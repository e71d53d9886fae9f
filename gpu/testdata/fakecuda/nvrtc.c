// A stand-in for libnvrtc.so: it takes any source and makes the smallest cubin that has the kernel
// vpps_run, of 64 registers and no stack, with the source's length and the tables of the plan, as
// they stand in the source, in its code. For tests only. Environment: VPPS_FAKE_NVRTC=major.minor
// is its version; VPPS_FAKE_FAIL=nvrtcCompileProgram:code makes it fail; VPPS_FAKE_SLOW is
// the milliseconds that it takes, but for a quick kernel.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "image.h"

typedef struct {
  size_t length;
  char tables[TABLES];
} Program;

static const char strings[] = "\0vpps_run\0.text.vpps_run\0.nv.info\0.symtab\0.strtab";
enum { KERNEL = 1, OF_TEXT = 10, OF_INFO = 25, OF_SYMBOLS = 34, OF_STRINGS = 42 };

static unsigned setting(const char *name) {
  const char *v = getenv(name);
  return v ? (unsigned)atoi(v) : 0;
}

static int fails(const char *function) {
  const char *v = getenv("VPPS_FAKE_FAIL");
  size_t n = strlen(function);
  return v && !strncmp(v, function, n) && v[n] == ':' ? atoi(v + n + 1) : 0;
}

#define AT(s, kind, naming, member, linked)                                                        \
  do {                                                                                             \
    i.section[s].sh_type = kind;                                                                   \
    i.section[s].sh_name = naming;                                                                 \
    i.section[s].sh_offset = offsetof(Image, member);                                              \
    i.section[s].sh_size = sizeof i.member;                                                        \
    i.section[s].sh_link = linked;                                                                 \
  } while (0)

static Image image(const Program *p) {
  Image i;
  memset(&i, 0, sizeof i);
  memcpy(i.header.e_ident, ELFMAG, SELFMAG);
  i.header.e_ident[EI_CLASS] = ELFCLASS64;
  i.header.e_ident[EI_DATA] = ELFDATA2LSB;
  i.header.e_ident[EI_VERSION] = EV_CURRENT;
  i.header.e_version = EV_CURRENT;
  i.header.e_machine = EM_CUDA;
  i.header.e_ehsize = sizeof i.header;
  i.header.e_shoff = offsetof(Image, section);
  i.header.e_shentsize = sizeof(Elf64_Shdr);
  i.header.e_shnum = SECTIONS;
  i.header.e_shstrndx = STRINGS;
  AT(TEXT, SHT_PROGBITS, OF_TEXT, code, 0);
  AT(INFO, SHT_PROGBITS, OF_INFO, info, 0);
  AT(SYMBOLS, SHT_SYMTAB, OF_SYMBOLS, symbol, STRINGS);
  AT(STRINGS, SHT_STRTAB, OF_STRINGS, strings, 0);
  i.section[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
  i.info[0] = (Record){4, 0x2f, 8, 1, 64};
  i.info[1] = (Record){4, 0x11, 8, 1, 0};
  i.symbol[1].st_name = KERNEL;
  i.symbol[1].st_shndx = TEXT;
  i.code.length = p->length;
  memcpy(i.code.tables, p->tables, TABLES);
  memcpy(i.strings, strings, sizeof strings);
  return i;
}

int nvrtcVersion(int *major, int *minor) {
  const char *v = getenv("VPPS_FAKE_NVRTC");
  *major = 12, *minor = 9;
  if (v)
    sscanf(v, "%d.%d", major, minor);
  return 0;
}
int nvrtcGetNumSupportedArchs(int *n) {
  *n = 3;
  return 0;
}
int nvrtcGetSupportedArchs(int *a) {
  a[0] = 75, a[1] = 80, a[2] = 90;
  return 0;
}
// The table named, with its end, goes behind to[at]; returns where it ends.
static size_t table(const char *src, const char *named, char *to, size_t at) {
  const char *from = strstr(src, named), *end = from ? strstr(from, "};") : NULL;
  size_t n = end ? (size_t)(end - from) + 2 : 0;
  if (at + n >= TABLES)
    abort();
  memcpy(to + at, from, n);
  return at + n;
}
int nvrtcCreateProgram(Program **p, const char *src, const char *name, int n,
                       const char *const *headers, const char *const *names) {
  (void)name, (void)n, (void)headers, (void)names;
  *p = calloc(1, sizeof **p);
  (*p)->length = strlen(src);
  static const char *const tables[] = {"Partition residency[", "Residence beyond[", "Grid grids["};
  for (size_t k = 0, at = 0; k < sizeof tables / sizeof *tables; k++)
    at = table(src, tables[k], (*p)->tables, at);
  return 0;
}
int nvrtcDestroyProgram(Program **p) {
  free(*p);
  return 0;
}
int nvrtcCompileProgram(Program *p, int n, const char *const *options) {
  (void)p;
  unsigned ms = setting("VPPS_FAKE_SLOW");
  for (int k = 0; k < n; k++)
    if (!strcmp(options[k], "--Ofast-compile=min"))
      ms = 0;
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
  return fails("nvrtcCompileProgram");
}
int nvrtcGetCUBINSize(Program *p, size_t *n) {
  (void)p;
  *n = sizeof(Image);
  return 0;
}
int nvrtcGetCUBIN(Program *p, char *to) {
  Image i = image(p);
  memcpy(to, &i, sizeof i);
  return 0;
}
static const char said[] = "vpps.cu(1): error: as the fake compiler was told";
int nvrtcGetProgramLogSize(Program *p, size_t *n) {
  (void)p;
  *n = fails("nvrtcCompileProgram") ? sizeof said : 1;
  return 0;
}
int nvrtcGetProgramLog(Program *p, char *to) {
  (void)p;
  strcpy(to, fails("nvrtcCompileProgram") ? said : "");
  return 0;
}
const char *nvrtcGetErrorString(int r) { return r == 6 ? "NVRTC_ERROR_COMPILATION" : "failed"; }
