/// \file
/// The globals of DyNet's interface: the random generator that initialisers draw from, and
/// switches. dynet::initialize sets them.
#ifndef DYNET_GLOBALS_H
#define DYNET_GLOBALS_H

#include <random>

namespace dynet {

class Device;
class NamedTimer;

/// The type of all numbers in tensors.
typedef float real;

/// The generator that initialisers and the functions of tensor.h draw from. Null before
/// initialize() and after cleanup(); the front-end owns it.
extern std::mt19937 *rndeng;
/// The only device. Null before initialize() and after cleanup(); the front-end owns it.
extern Device *default_device;
/// The weight decay of every ParameterCollection made from now on, in [0,1).
extern float default_weight_decay_lambda;
/// Accepted, without effect: batching is the scheduler's work.
extern int autobatch_flag;
/// Accepted, without effect: see VPPS_TRACE and VPPS_CLOCKS in vpps.h.
extern int profiling_flag;
/// A stopwatch for the program. Nothing here times by it: see VPPS_TRACE. Its class is in timing.h.
extern NamedTimer timer;

} // namespace dynet
#endif
