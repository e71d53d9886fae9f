// The words of a CELL script, for the host that writes them and the kernel that reads them.
//
// A stage is what one cell does between two exchanges: gathers of whole vectors, terms (a matrix
// times a gathered vector), a chain of micro-operations on single units, and stores. It stands once
// in the script. An instruction runs a stage on n records; a record has the operands of one cell.
//
// An operand is one word, in bytes. With MEMORY set it is a place in memory that all processors
// see, and unit u's value is u floats after it. Otherwise it is a warp's own value: a value of a
// unit that only the unit's own warp reads, in shared memory.
#pragma once
#include <cstdint>

typedef uint32_t u32;

enum : u32 {
  WIDTH = 256,         // elements of a vector, which are the units
  SLOTS = 8,           // matrices of a warp's registers
  MEMORY = 1,          // of an operand
  EMPTY = 0xFFFFFFFFu, // what a word is before it is published: a NaN that no arithmetic makes
  STAGED = 40,         // vectors in one of the two buffers for gathered vectors
  ITEMS = 16,          // cells that a warp works on at a time
  LANES = 8,           // micro-operations of a bundle; as many lanes work on one cell
  FILE_WORDS = 40,     // distance of two cells' register files
  ZERO = 8,            // registers that hold constants; 0 to 7 are the sums of products
  ONE = 9,
  TRASH = 39, // where an idle lane's result goes
};

// Functions that a micro-operation applies to a * b + c * d.
enum : u32 { PLAIN, LOGISTIC, TANH, LOGISTIC_SLOPE, TANH_SLOPE }; // y (1 - y) and 1 - y * y

// Where a result goes besides its register.
enum : u32 { NOWHERE, OWN, PUBLISH };

enum : u32 { OP_END, OP_CELL, OP_MATRICES };

// Of an instruction.
enum : u32 {
  DECODE = 1, // finds the addresses of the next gather, while it waits itself
  ISSUE = 2,  // begins that gather as soon as it has published
};

struct Instruction {
  u32 op;    // OP_
  u32 stage; // CELL: which; MATRICES: where the matrices are in memory, in floats
  u32 n;     // CELL: cells; MATRICES: how many of them
  u32 first; // CELL: first word of the first record; MATRICES: where their biases are in memory
  u32 flags;
  u32 gather_stage, gather_n, gather_first; // of the next instruction that gathers
};

// Which slots multiply which gather, and where their sums go: a kernel has a routine for each
// shape that the resident matrices need. ADVANCE: a bit a slot, it takes the next gather. Slot s
// adds to sum s % SUMS.
template <u32 SLOTS_, u32 ADVANCE_, u32 SUMS_> struct Shape {
  enum : u32 { USED = SLOTS_, ADVANCE = ADVANCE_, SUMS = SUMS_ };
};
typedef Shape<8, 0x11, 8> TwoByFour; // four matrices for each of two vectors
typedef Shape<8, 0xD5, 2> FiveToTwo; // the same transposed, one of the four in halves
typedef Shape<2, 0x3, 2> TwoByOne;   // a matrix for each of two vectors
typedef Shape<2, 0x1, 2> OneByTwo;   // two matrices for one vector
enum : u32 { NO_TERMS, TWO_BY_FOUR, FIVE_TO_TWO, TWO_BY_ONE, ONE_BY_TWO };

// Displacements count vectors in memory, and single own values.
struct Stage {
  u32 gathers;     // vectors of a cell that are gathered
  u32 chunk;       // cells whose gathers fit a buffer
  u32 record;      // words of a record
  u32 reciprocal;  // of gathers, in 16 bits
  u32 pattern[2];  // a byte a gather: operand, displacement << 4
  u32 shape;       // of the terms
  u32 bundles;     // of the chain
  u32 early;       // bundles up to the last that publishes
  u32 functions;   // a bit a bundle: a lane has a function
  u32 stores;      // a bit a bundle: a lane stores
  u32 loads;       // bundles of loads, before the chain
  u32 early_loads; // the first ones, which the instruction before may do while it waits
  u32 loads_at;    // words from the stages' begin: a Load a lane
  u32 bundles_at;  // likewise: a Micro a lane
  u32 unused;
};

// Registers are places in bytes. A record's operand is its place in the record, in bytes.
struct LoadWord {
  u32 word; // register, operand << 8, displacement << 16
};
struct MicroWords {
  u32 ab, cd;  // registers a, b << 16; c, d << 16
  u32 to;      // register, function << 16, store << 24
  u32 operand; // displacement << 16
};

struct Group { // a group's part of the script
  u32 at;      // words from the script's begin
  u32 words;   // instructions and records
  u32 own;     // own values of a unit
  u32 unused;
};
