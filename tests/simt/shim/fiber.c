/* Switches stacks by a few lines of assembly on x86-64 and by ucontext elsewhere. Assembly is used because swapcontext
 * makes two system calls per switch, and because ASan's version of it loses its information about the new stack. */
#include "simt/shim/fiber.h"

#include <sanitizer/common_interface_defs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Maps a stack with a guard page below it. */
static char *new_stack(void) {
  const size_t guard = 65536; /* at least a page on every machine */
  char *memory = mmap(NULL, guard + FIBER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE)) {
    perror("simt: no memory for a fiber's stack");
    abort();
  }
  return memory + guard;
}

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)

/* Pushes the callee-saved registers, swaps the stack pointers, and pops the registers of the other stack. */
void simt_switch_stacks(void **save, void *load);
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl simt_switch_stacks\n"
    ".hidden simt_switch_stacks\n"
    ".type simt_switch_stacks, @function\n"
    "simt_switch_stacks:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size simt_switch_stacks, . - simt_switch_stacks\n");

static void first_frame(fiber *self, char *stack, void (*entry)(void)) {
  enum { SAVED_REGISTERS = 6 };
  /* The first `ret` jumps to `entry`. The return address of 0 above it aligns the stack as after a call. */
  void **top = (void **)(stack + FIBER_STACK) - 2;
  top[0] = (void *)entry;
  top[1] = NULL;
  self->saved = top - SAVED_REGISTERS;
}

static void swap(fiber *from, fiber *to) { simt_switch_stacks(&from->saved, to->saved); }

#else

#include <ucontext.h>

static ucontext_t *context_of(fiber *self) {
  if (!self->saved) self->saved = calloc(1, sizeof(ucontext_t));
  if (!self->saved) abort();
  return self->saved;
}

static void first_frame(fiber *self, char *stack, void (*entry)(void)) {
  ucontext_t *context = context_of(self);
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = FIBER_STACK;
  makecontext(context, entry, 0);
}

static void swap(fiber *from, fiber *to) { swapcontext(context_of(from), context_of(to)); }

#endif

void fiber_create(fiber *self, void (*entry)(void)) {
  char *stack = new_stack();
  *self = (fiber){.bottom = stack, .size = FIBER_STACK};
  first_frame(self, stack, entry);
}

void fiber_arrived(fiber *self, fiber *from) {
  __sanitizer_finish_switch_fiber(self->fake_stack, &from->bottom, &from->size);
}

void fiber_switch(fiber *from, fiber *to) {
  const void *bottom;
  size_t size;
  __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
  swap(from, to);
  __sanitizer_finish_switch_fiber(from->fake_stack, &bottom, &size);
}
