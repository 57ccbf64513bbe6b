#include "cli/problem.h"

#include <string.h>

#include "cli/message.h"

wlm_status wlmi_cli_spec(const wlm_problem *problem, wlm_index rowptr_type, wlm_index colind_type, wlm_type value_type,
                         int has_values, wlmi_spec *spec) {
  wlm_csr csr = WLM_CSR_INIT;
  csr.rowptr_type = rowptr_type;
  csr.colind_type = colind_type;
  csr.value_type = value_type;
  csr.values = has_values ? &csr : NULL; /* only NULL or not matters */
  return wlmi_spec_make(problem, &csr, spec);
}

/* Terms of the library and the command's words for them. */
static const struct {
  const char *library, *command;
} words[] = {
    {"wlm_problem.heads", "--heads"},
    {"wlm_problem.custom", "--op"},
    {"wlm_problem.n", "-n"},
    {"wlm_problem.sampling.norm", "the NORM of --sample"},
    {"leave it at WLM_NORM_NONE", "leave it out"},
    {"wlm_problem: want_argmax", "--arg"},
    {"wlm_problem: sddmm", "--operation sddmm"},
    {", see want_argmax and wlm_execute_args.db", ""},
    {"op:activation", "--epilogue"},
};

static void put_in_words_of_options(const char *detail, wlmi_text *out) {
  while (*detail) {
    size_t i = 0, size = 1;
    while (i < sizeof words / sizeof *words && strncmp(detail, words[i].library, strlen(words[i].library))) i++;
    if (i < sizeof words / sizeof *words) {
      size = strlen(words[i].library);
      wlmi_text_puts(out, words[i].command);
    } else {
      wlmi_text_append(out, detail, 1);
    }
    detail += size;
  }
}

static wlm_status check_strides(const wlmi_cli_options *o, int64_t n) {
  const struct {
    const char *option;
    int64_t given;
  } strides[] = {{"--ldb", o->args.ldb}, {"--ldc", o->args.ldc}};
  for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
    if (strides[i].given && strides[i].given < n)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be at least n = %lld, not %lld", strides[i].option,
                       (long long)n, (long long)strides[i].given);
  return WLM_OK;
}

int wlmi_cli_check_problem(const wlmi_cli_options *o, const char *command, int knows_widths) {
  wlm_problem problem = o->problem;
  wlm_status status = WLM_OK;
  wlmi_spec spec;
  for (int i = 0; i < (knows_widths ? o->n_count : 1) && status == WLM_OK; i++) {
    problem.n = knows_widths ? o->n[i] : problem.heads;
    status = wlmi_cli_spec(&problem, o->rowptr_type, o->colind_type, problem.dense_type, 1, &spec);
    if (status == WLM_OK && knows_widths) status = check_strides(o, problem.n);
  }
  if (status == WLM_OK) return 1;
  wlmi_text text = {0};
  put_in_words_of_options(wlm_error_detail(), &text);
  wlmi_message("warploom %s: %s", command, text.data ? text.data : "out of memory");
  wlmi_text_release(&text);
  return 0;
}
