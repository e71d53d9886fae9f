// The words of a CELL script, for the host that writes them and the kernel that reads them.
//
// A stage is what one cell does between two exchanges: gathers of whole vectors, terms (a matrix
// times a gathered vector), a chain of micro-operations on single units, and stores. It stands once
// in the script. An instruction runs a stage on n records; a record has the operands of one cell.
//
// An operand is one word. With MEMORY set the rest is an offset in floats into memory that all
// processors see, and a unit's value is that many floats behind it. Otherwise it is the number of
// an own value: a value of a unit that only the unit's own warp reads, in shared memory.
#pragma once
#include <cstdint>

typedef uint32_t u32;

enum : u32 {
  WIDTH = 256,          // elements of a vector, which are the units
  SLOTS = 8,            // matrices of a warp's registers
  MEMORY = 0x80000000u, // of an operand
  EMPTY = 0xFFFFFFFFu,  // what a word is before it is published: a NaN that no arithmetic makes
  STAGED = 40,          // vectors in one of the two buffers for gathered vectors
  ITEMS = 16,           // (cell, unit) pairs that a warp works on at a time
  LANES = 8,            // micro-operations of a bundle; as many lanes work on one item
  FILE_WORDS = 40,      // distance of two items' register files
  ZERO = 8,
  ONE = 9,    // registers that hold constants; 0 to 7 are the sums of products
  TRASH = 39, // where an idle lane's result goes
};

// Functions behind a micro-operation's a * b + c * d.
enum : u32 { PLAIN, LOGISTIC, TANH, LOGISTIC_SLOPE, TANH_SLOPE }; // y (1 - y) and 1 - y * y

// Where a result goes besides its register.
enum : u32 { NOWHERE, OWN, PUBLISH };

enum : u32 { OP_END, OP_CELL, OP_MATRICES };

struct Instruction {
  u32 op;    // OP_
  u32 stage; // CELL: which; MATRICES: where the matrices are in memory
  u32 n;     // CELL: cells; MATRICES: how many of them
  u32 first; // CELL: first word of the first record; MATRICES: where their biases are in memory
};

// Displacements count vectors in memory, and single own values.
struct Stage {
  u32 gathers;    // vectors of a cell that are gathered
  u32 chunk;      // cells whose gathers fit a buffer
  u32 record;     // words of a record
  u32 reciprocal; // of gathers, in 16 bits
  u32 pattern[2]; // a byte a gather: operand, displacement << 4
  u32 slots;      // matrices in use: the first ones
  u32 advance;    // a bit a slot: it takes the next gather
  u32 sums;       // 2 or 8: slot s adds to sum s % sums
  u32 bundles;    // of the chain
  u32 early;      // bundles up to the last that publishes
  u32 functions;  // a bit a bundle: a lane has a function
  u32 stores;     // a bit a bundle: a lane stores
  u32 loads;      // bundles of loads, before the chain
  u32 loads_at;   // words from the stages' begin: operand, displacement << 8, register << 16
  u32 bundles_at; // two words a lane: a, b << 8, c << 16, d << 24; register, function << 8,
                  // store << 12, operand << 16, displacement << 24
};

struct Group { // a group's part of the script
  u32 at;      // words from the script's begin
  u32 words;   // instructions and records
  u32 own;     // own values of a unit
  u32 unused;
};
