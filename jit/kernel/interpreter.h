// The interpreter, once for both devices: decoding, and which operation an instruction is. What
// differs between the devices are the members of Device:
//
//   const u32 *instruction(l, pc)     where the words of the next instruction can be read
//   Head head(w)                      its first two words
//   bool held(head)                   an instruction that this launch is to stop before
//   void begin(p, w, head)            an instruction that depends on others of its processor
//   const u32 *items(l, p, w, head)   its items, which follow head words or are in a list
//   bool sound(l, p, w)               false: the checking build refuses it
//   void signal(l, w)                 Signal
//   Step wait(l, p, w)                Wait: BLOCKED where it returns before all signals are there,
//                                     STOPPED if it lasts too long
//   void refuse(p)                    there is no such instruction
//   resident_product, ...             the matrix routines
//   float *scratch, *shared           memory that the processor's threads share, between two
//                                     instructions and while one that works there runs
//   Clocks clocks                     clocks.h
#pragma once

enum Step { MOVED, BLOCKED, HALTED, STOPPED, MULTIPLIED, HELD };

// A script multiplies by matrices first, and forms gradients of parameters and updates then. A GPU
// has an interpreter for each half: in the second one the registers of the matrices are free.
enum Half { PRODUCTS, GRADIENTS, BOTH };
VP bool ends_products(u32 op) {
  return op == OP_OUTER || op == OP_NORM || op == OP_CLIP || op == OP_UPDATE;
}
// While a processor waits for others before gradients, the second half's instructions get into its
// cache.
VP bool waits_for_gradients(const u32 *w) { return w[0] >> PHASE_SHIFT >= PHASE_GRADIENTS; }

// Executes an instruction with operands. False: there is no such instruction in this half.
template <Half HALF, class Device>
VP bool execute(Device &d, const Launch &l, Processor &p, const u32 *w, const Head &head) {
  u32 fn = head.fn(), flags = head.flags(), count = head.count();
  if (head.op() == OP_MAP) { // the most frequent one first
    map(l, w, fn, flags, count);
    return true;
  }
  if (HALF == GRADIENTS && (head.op() == OP_PRODUCT || head.op() == OP_PRODUCT_T))
    return false;
  if (HALF == PRODUCTS && ends_products(head.op()))
    return false;
  switch (head.op()) {
  case OP_FILL:
    fill(l, w, count);
    break;
  case OP_STRIDED:
    strided(l, w, fn, flags, count, d.scratch);
    break;
  case OP_CHAIN:
    chain(l, w, flags, count, d.shared);
    break;
  case OP_SUM:
    sum(l, w, fn, flags, count, d.scratch);
    break;
  case OP_PRODUCT:
    d.resident_product({l, w, d.items(l, p, w, PRODUCT_ITEMS), flags, count}, p);
    break;
  case OP_PRODUCT_T:
    d.resident_product_t({l, w, d.items(l, p, w, PRODUCT_T_ITEMS), flags, count}, p);
    break;
  case OP_OUTER:
    d.resident_outer({l, w, d.items(l, p, w, OUTER_ITEMS), flags, count}, p);
    break;
  case OP_GEMM:
    gemm(l, w, flags, count, d.shared, d.scratch);
    break;
  case OP_ROW:
    row(l, w, fn, flags, count, d.scratch);
    break;
  case OP_RANDOM:
    random(l, w, fn, flags, count);
    break;
  case OP_NORM:
    norm(l, w, flags, count, d.scratch);
    break;
  case OP_CLIP:
    MEET();
    clip(l, p, w, flags);
    break;
  case OP_UPDATE:
    update(l, p, w, fn, flags, count);
    break;
  default:
    return false;
  }
  return true;
}

// Goes one instruction on.
template <Half HALF, class Device> VP Step step(Device &d, const Launch &l, Processor &p) {
  const u32 *w = d.instruction(l, p.pc);
  const Head head = d.head(w);
  d.clocks.fetched();
  if (head.op() == OP_HALT)
    return HALTED;
  if (d.held(head))
    return HELD;
  d.begin(p, w, head);
  d.clocks.begin(w);
  if (!d.sound(l, p, w))
    return STOPPED;
  Step s = MOVED;
  if (head.op() > OP_WAIT) {
    if (!execute<HALF>(d, l, p, w, head)) {
      if (HALF == PRODUCTS && ends_products(head.op()))
        return MULTIPLIED; // it is begun anew, by the second half
      d.refuse(p);
      return STOPPED;
    }
  } else if (head.op() == OP_SIGNAL) {
    d.signal(l, w);
  } else {
    if (HALF == PRODUCTS && waits_for_gradients(w))
      return MULTIPLIED;
    s = d.wait(l, p, w);
  }
  d.clocks.end(p, w, s == MOVED);
  if (s == MOVED)
    p.pc += head.length();
  return s;
}

// Goes on until the processor halts, meets a wait that is not satisfied, has to stop, is held, or
// has multiplied.
template <Half HALF, class Device> VP Step interpret(Device &d, const Launch &l, Processor &p) {
  Step s;
  do
    s = step<HALF>(d, l, p);
  while (s == MOVED);
  return s;
}
