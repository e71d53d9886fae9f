/* What a call does before it goes on in Go: start.c starts Go's runtime, urgent.c shares SIGURG
 * with it, signal_stack.c gives the thread a stack for signals. */
#ifndef VPPS_ENTER_H
#define VPPS_ENTER_H

/* 1 in a child that was forked after Go had been started: there, Go's threads are missing. */
int vpps_forked(void);

/* Starts Go's runtime if that was not done yet. Returns 0, or -1 if there is no memory. */
int vpps_start_go(void);

/* Around the start: a handler that the host has for SIGURG goes on to get the host's. */
void vpps_before_go(void);
void vpps_after_go(void);

/* Makes sure that the calling thread has an alternate signal stack. Returns 0, or -1 if there is no
 * memory for one. */
int vpps_signal_stack(void);

#endif
