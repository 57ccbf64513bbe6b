#include "support/requests.h"
#include "support/defaults.h"

#include <string.h>

const request requests[REQUESTS] = {
    {.name = "sum"},
    {.name = "sum of a pattern", .pattern = 1},
    {.name = "mean", .message = WLM_COPY_B, .reduce = WLM_MEAN},
    {.name = "max with argmax", .reduce = WLM_MAX, .argmax = 1},
    {.name = "its gradient", .reduce = WLM_MAX, .argmax = 1, .gradient = 1},
    {.name = "sddmm", .sddmm = 1},
    {.name = "epilogue", .epilogue = 1},
    {.name = "heads", .heads = 1},
    {.name = "sampled", .sample = WLM_SAMPLE_FASTRAND},
    {.name = "transposed", .transpose = 1},
    {.name = "transposed min with argmax", .message = WLM_ADD, .reduce = WLM_MIN, .argmax = 1, .transpose = 1},
    {.name = "its transposed gradient",
     .message = WLM_ADD,
     .reduce = WLM_MIN,
     .argmax = 1,
     .transpose = 1,
     .gradient = 1},
};

wlm_problem request_problem(const request *r) {
  return (wlm_problem)PROBLEM(.n = DRAWN_N, .message = r->message, .reduce = r->reduce,
                              .operation = r->sddmm      ? WLM_SDDMM
                                           : r->gradient ? WLM_ARGMAX_GRADIENT
                                                         : WLM_SPMM,
                              .transpose = r->transpose, .want_argmax = r->argmax, .heads = r->heads ? DRAWN_HEADS : 1,
                              .epilogue.bias = r->epilogue, .epilogue.activation = r->epilogue ? "relu" : NULL,
                              .sampling.sample = r->sample, .sampling.width = r->sample ? 8 : 0);
}

wlm_execute_args request_call(const request *r, const drawn *a, results *to) {
  wlm_execute_args args = EXECUTE_ARGS(.b = a->b, .c = to->c, .argmax = to->argmax, .argmax_db = to->db,
                                       .dvalues = to->dvalues, .argmax_dvalues = to->dvalues);
  if (r->sddmm || r->gradient) args.x = a->x;
  if (r->epilogue) args.bias = a->bias, args.alpha = 2, args.beta = 3;
  if (r->sample) args.seed = 12345;
  return args;
}

void results_begin(results *to) {
  memset(to, 0, sizeof *to);
  for (int i = 0; i < DRAWN_DENSE; i++) to->c[i] = (float)(i % 7), to->argmax[i] = -7;
}
