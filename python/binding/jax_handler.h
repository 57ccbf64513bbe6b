/* The handlers through which XLA runs warploom's products: python/warploom/jax registers them.
 *
 * A call's one attribute is a key. It names a plan that was made for a size when the call was lowered, and where each
 * array of the call belongs. The handler binds the plan to the arrays and enqueues it: it neither allocates, waits nor
 * compiles. */
#pragma once

#include <warploom/warploom_attention.h>
#include <warploom/warploom_message.h>

/* What a call fills in: the offsets of its arrays are those of pointers in here. */
typedef struct warploom_jax_call {
  wlm_csr csr;
  wlm_execute_args args;
  wlm_message_args message;
  wlm_attention_operands attention;
} warploom_jax_call;

/* Adds the plan of a key on a device, the number of a GPU or -1 for the host. The plan stays for good; the rest is
 * copied. `offsets` has those of all arguments, then those of all results. WLM_ERR_OUT_OF_MEMORY. */
int warploom_jax_add(int64_t key, int device, wlm_plan *plan, const warploom_jax_call *call, const int *offsets,
                     int arguments, int results);

/* The handler of the host or of GPUs as XLA takes it. XLA may record the calls on GPUs in its CUDA graphs. */
void *warploom_jax_handler(int is_gpu);
