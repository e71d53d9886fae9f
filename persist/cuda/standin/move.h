#ifndef VPPS_STANDIN_MOVE_H
#define VPPS_STANDIN_MOVE_H
#ifdef __cplusplus
extern "C" {
#endif

/* Runs a kernel of persist/cuda/move.cu with the struct Arguments that it has there, on so many
 * blocks of so many threads. 0: there is no such kernel. */
int vpps_standin_move(const char *kernel, const void *arguments, unsigned grid, unsigned block);

#ifdef __cplusplus
}
#endif
#endif
