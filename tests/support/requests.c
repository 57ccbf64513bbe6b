#include "support/requests.h"

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
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = DRAWN_N;
  problem.message = r->message;
  problem.reduce = r->reduce;
  problem.operation = r->sddmm ? WLM_SDDMM : WLM_SPMM;
  problem.transpose = r->transpose;
  problem.want_argmax = r->argmax;
  problem.heads = r->heads ? DRAWN_HEADS : 1;
  problem.epilogue.bias = r->epilogue;
  problem.epilogue.activation = r->epilogue ? "relu" : NULL;
  problem.sampling.sample = r->sample;
  problem.sampling.width = r->sample ? 8 : 0;
  return problem;
}

wlm_execute_args request_call(const request *r, const drawn *a, results *to) {
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = a->b;
  args.c = to->c;
  args.argmax = to->argmax;
  args.argmax_db = to->db;
  args.dvalues = args.argmax_dvalues = to->dvalues;
  if (r->sddmm || r->gradient) args.x = a->x;
  if (r->epilogue) args.bias = a->bias, args.alpha = 2, args.beta = 3;
  if (r->sample) args.seed = 12345;
  return args;
}

void results_begin(results *to) {
  memset(to, 0, sizeof *to);
  for (int i = 0; i < DRAWN_DENSE; i++) to->c[i] = (float)(i % 7), to->argmax[i] = -7;
}
