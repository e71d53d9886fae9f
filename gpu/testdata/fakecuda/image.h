// The machine code of the stand-in for NVRTC, which the stand-in for the driver reads the plan
// from: an ELF file with one kernel.
#include <elf.h>

// Sections: their names, symbol names and contents follow the header in this order.
enum { NONE, TEXT, INFO, SYMBOLS, STRINGS, SECTIONS };

// A record of .nv.info: format (sized), attribute, size, symbol, value.
typedef struct {
  unsigned char format, attribute;
  unsigned short size;
  unsigned symbol, value;
} Record;

enum { TABLES = 1 << 16, NAMES = 64 };

typedef struct {
  Elf64_Ehdr header;
  Elf64_Shdr section[SECTIONS];
  Record info[2];
  Elf64_Sym symbol[2];
  struct {
    unsigned long long length; // of the source
    char tables[TABLES];       // the tables of the plan, as they stand in the source
  } code;
  char strings[NAMES];
  void *plan; // of a module that was launched: what launch.cc has read from the tables
} Image;
