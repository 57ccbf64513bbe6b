/* bench summary FILE: a Markdown table of the cases and what they come to, as the file's suite has it. */
#include "bench/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/summary_parts.h"
#include "common/memory.h"

static const wlmi_summary *of_suite(const char *line) {
  static const wlmi_summary *const others[] = {&wlmi_summary_papers,    &wlmi_summary_sampled,
                                               &wlmi_summary_operators, &wlmi_summary_selection,
                                               &wlmi_summary_minibatch, &wlmi_summary_dispatch};
  char suite[WLM_CASE_NAME] = "";
  wlmi_line_string(line, "suite", suite);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i]->suite, suite)) return others[i];
  return &wlmi_summary_core;
}

wlm_status wlmi_bench_summary(const char *path, FILE *out) {
  const wlmi_summary *summary = NULL;
  void *state = NULL;
  char *line = NULL;
  size_t capacity = 0;
  int64_t number = 0;
  wlm_status status = WLM_OK;
  FILE *file = fopen(path, "r");
  if (!file) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  while (status == WLM_OK && getline(&line, &capacity, file) > 0) {
    if (!number++) {
      summary = of_suite(line);
      state = wlmi_alloc_zero(1, summary->state_size);
      if (!state) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a summary"));
      fputs(summary->heading, out);
    }
    status = summary->add(line, state, out);
    if (status != WLM_OK) wlmi_fail_in(status, "%s:%lld", path, (long long)number);
  }
  if (status == WLM_OK && summary) summary->finish(state, number, out);
done:
  fclose(file);
  free(line);
  wlmi_free(state);
  return status;
}
