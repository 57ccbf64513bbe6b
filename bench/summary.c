/* bench summary FILE: writes a Markdown table of the cases and their means, by the rules of the file's suite. */
#include "bench/summary.h"

#include <string.h>

#include "core/base/memory.h"

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

struct summing {
  const wlmi_summary *summary; /* of the first line's suite */
  void *state;
  int64_t lines;
  FILE *out;
};

static wlm_status add_line(void *user, const char *line) {
  struct summing *s = user;
  if (!s->lines++) {
    s->summary = of_suite(line);
    s->state = wlmi_alloc_zero(1, s->summary->state_size);
    if (!s->state) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a summary");
    fputs(s->summary->heading, s->out);
  }
  return s->summary->add(line, s->state, s->out);
}

wlm_status wlmi_bench_summary(const char *path, FILE *out) {
  struct summing s = {.out = out};
  wlm_status status = wlmi_results_each(path, add_line, &s);
  if (status == WLM_OK && s.summary) s.summary->finish(s.state, s.lines, out);
  wlmi_free(s.state);
  return status;
}
