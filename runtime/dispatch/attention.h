/* The arguments of attention kernels: struct wlm_args as in their sources. */
#ifndef WLM_RUNTIME_DISPATCH_ATTENTION_H
#define WLM_RUNTIME_DISPATCH_ATTENTION_H

#include <stddef.h>

#include "templates/prelude/args.h"
#include "templates/prelude/attention_args.h"
#include "templates/prelude/product_args.h"

struct wlm_attention_args {
  struct wlm_args args; /* the arguments of a launch */
  struct wlm_attention attention;
  struct wlm_products products; /* only some sources have it */
};
_Static_assert(offsetof(struct wlm_attention_args, attention) == sizeof(struct wlm_args) &&
                   offsetof(struct wlm_attention_args, products) ==
                       sizeof(struct wlm_args) + sizeof(struct wlm_attention),
               "emitted sources count on it");

#endif
