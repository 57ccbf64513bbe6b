/* A fiber: a thread of control on its own stack, switched explicitly; every switch is announced to ASan. */
#pragma once

#include <stddef.h>

typedef struct fiber {
  void *saved;      /* the stack pointer, or a ucontext if there is no assembly for this machine */
  void *fake_stack; /* ASan's record of the stack */
  const void *bottom;
  size_t size;
} fiber;

enum { FIBER_STACK = 128 * 1024 };

/* `entry` must call fiber_arrived(self, from) first and must not return. A stack is created once and never freed. */
void fiber_create(fiber *self, void (*entry)(void));
/* Switches from the running fiber `from` to `to`. A zeroed `from` stands for the process's own stack. */
void fiber_switch(fiber *from, fiber *to);
void fiber_arrived(fiber *self, fiber *from);
