/// \file
/// vpps::handle: train a DyNet model with its weights resident on the chip. One fb() is forward,
/// backward and update in one launch, and returns before it is done.
///
///     vpps::handle hndl(model);                 // or (model, trainer)
///     float stale  = hndl.fb(model, cg, loss);
///     float latest = hndl.sync_get_latest_loss();
///
/// The same names are there for libvpps's own DyNet headers (bundled.hpp) and for an installed
/// DyNet (installed/handle.hpp): whichever the program is compiled against.
#ifndef VPPS_HPP
#define VPPS_HPP

#include <dynet/dynet.h>
#include <dynet/training.h>

#include <vpps/options.hpp>

#ifdef VPPS_BUNDLED_DYNET
#include <vpps/bundled.hpp>
#include <vpps/checkpoint.hpp>
#include <vpps/parallel.hpp>
#else // an installed DyNet's headers
#include <vpps/installed/handle.hpp>
#endif
#endif
