/* A fiber: a thread of control on its own stack, switched explicitly; every switch is announced to ASan. */
#ifndef WLM_TESTS_SIMT_FIBER_H
#define WLM_TESTS_SIMT_FIBER_H

#include <stddef.h>

typedef struct fiber {
  void *saved;      /* stack pointer, or ucontext where there is no assembly for the machine */
  void *fake_stack; /* ASan's */
  const void *bottom;
  size_t size;
} fiber;

enum { FIBER_STACK = 128 * 1024 };

/* `entry` never returns; its first act is fiber_arrived(self, from). Stacks are made once and live as long
 * as the process. */
void fiber_create(fiber *self, void (*entry)(void));
/* Leaves `from`, the fiber that is running (a zeroed one stands for the process's own stack), for `to`. */
void fiber_switch(fiber *from, fiber *to);
void fiber_arrived(fiber *self, fiber *from);

#endif
