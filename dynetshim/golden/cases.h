// The kinds of recorded cases. Each function runs one record through the front-end; it
// throws mismatch (or what the front-end throws) if the result differs from the recorded
// one, and not_implemented if the front-end lacks what is called.
#ifndef GOLDEN_CASES_H
#define GOLDEN_CASES_H

#include <functional>
#include <string>

#include "records.h"

// How a function gets its plain arguments: a gradient reaches both, by different ways.
enum class arguments { inputs, parameters };

void run_operation(const record &r, arguments as);
void run_builder(const record &r);

// How a program trains: DyNet's forward, backward and update; vpps::handle::fb, waiting
// for each loss; or fb running ahead of them.
enum class training { calls, fb, fb_ahead };

// Whatever the way, the same numbers: a trainer's steps are run by calls and by fb.
void run_trainer(const record &r, training by);

// A trace is several cases: each batch size by each way of training. Calls report for
// each with its name and the work to do.
void run_trace(const record &r,
               const std::function<void(const std::string &name, std::function<void()>)> &report);

#endif
