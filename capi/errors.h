/* The last error of a thread, of n bytes: C memory, for Go has no threads. And what calls the
 * program's function for a line of the log. */
#ifndef VPPS_ERRORS_H
#define VPPS_ERRORS_H
#include <stdlib.h>
#include "vpps.h"
typedef const char vpps_cchar;
typedef const float vpps_cfloat;
typedef const uint32_t vpps_cuint;
typedef const vpps_dim vpps_cdim;
typedef const vpps_words vpps_cwords;
typedef const vpps_engine_options vpps_cengine_options;
typedef const vpps_trainer_options vpps_ctrainer_options;
typedef const vpps_checkpoint_contents vpps_ccheckpoint_contents;
void vpps_log_line(vpps_log_function function, void *data, int level, vpps_cchar *line);
void vpps_set_error(vpps_cchar *text, size_t n);
#endif
