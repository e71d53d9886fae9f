// The globals of DyNet's API: the random generator that initialisers draw from, and
// switches. Set up by dynet::initialize.
#ifndef DYNET_GLOBALS_H
#define DYNET_GLOBALS_H

#include <random>

namespace dynet {

class Device;

typedef float real;

extern std::mt19937 *rndeng;   // null before initialize
extern Device *default_device; // null before initialize
extern float default_weight_decay_lambda;
extern int autobatch_flag; // accepted, without effect: batching is the scheduler's work
extern int profiling_flag; // likewise

} // namespace dynet
#endif
