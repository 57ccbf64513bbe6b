#include <stdint.h>
#include <stdio.h>

#include "core/synth/input.h"
#include "support/asserts.h"
#include "support/defaults.h"
#include "support/host_bench.h"

void bench_make(bench *b, const char *templates, const char *input, int64_t n) {
  static int count;
  const wlm_problem problem = WLM_PROBLEM_INIT;
  *b = (bench){.problem = problem, .call = WLM_EXECUTE_ARGS_INIT};
  b->problem.n = n;
  snprintf(b->database, sizeof b->database, "%s/tuned-%d.db", folder.path, count++);
  wlm_context_options options =
      CONTEXT_OPTIONS(.device = "host", .database = b->database, .system_database = "", .templates = templates);
  assert_status(WLM_OK, wlm_context_create(&options, &b->context));
  assert_status(WLM_OK, wlmi_input_read(input, &b->csr));
  assert_status(WLM_OK, wlmi_upload_create(b->context, &b->csr, WLM_I32, &b->upload));
}

void bench_release(bench *b) {
  wlmi_upload_release(&b->upload);
  wlmi_csr_host_release(&b->csr);
  wlm_context_destroy(b->context);
}
