#include "cli/problem.h"

#include <stdio.h>
#include <string.h>

#include "cli/progress.h"
#include "warploom/warploom_message.h"

wlm_status wlmi_cli_spec(const wlm_problem *problem, wlm_index rowptr_type, wlm_index colind_type, wlm_type value_type,
                         int has_values, wlmi_spec *spec) {
  wlm_csr csr = WLM_CSR_INIT;
  csr.rowptr_type = rowptr_type;
  csr.colind_type = colind_type;
  csr.value_type = value_type;
  csr.has_values = has_values;
  return wlmi_spec_make(problem, &csr, spec);
}

/* ---- --message --------------------------------------------------------------------------------------------------- */

/* Whether the text begins with NAME: or NAME=, so that it is a message and no expression. */
static int is_whole_message(const char *text) {
  text += strspn(text, " \t");
  const size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  text += name + strspn(text + name, " \t");
  return name && (*text == ':' || (text[0] == '=' && text[1] != '='));
}

/* Options that would change nothing. */
static wlm_status check_beside_message(const wlmi_cli_options *o, int is_whole) {
  const wlm_problem *p = &o->problem;
  const char *why = NULL;
  if (p->operation != WLM_SPMM)
    why = "--message and --operation name two operations; leave one out";
  else if (p->custom || p->message != WLM_MUL)
    why = "--op with a message of its own beside --message; give only a reduction, as in --op max";
  else if (is_whole && p->reduce != WLM_SUM)
    why = "--op beside a --message that names its reductions; leave --op out";
  else if (o->args.alpha != 1 || o->args.beta != 0)
    why = "--alpha and --beta do not apply to --message; write a factor into it";
  else if (p->empty != WLM_EMPTY_ZERO)
    why = "--empty does not apply to --message, which gives 0 (1 for prod) for a row without edges; leave it out";
  return why ? wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s", why) : WLM_OK;
}

/* Then --arg is their type. */
static int only_reads_positions(const wlm_problem *problem) {
  wlm_message_table table = {.size = sizeof table};
  int reads = 0, writes = 0;
  if (wlm_message_describe(problem, &table) != WLM_OK) return 0;
  for (int i = 0; i < table.operands; i++) reads |= table.operand[i].width == WLM_WIDTH_WINS;
  for (int r = 0; r < table.results; r++)
    writes |= table.result[r].reduce == WLM_MAX || table.result[r].reduce == WLM_MIN;
  return reads && !writes;
}

static wlm_status take_message(wlmi_cli_options *o) {
  if (!o->message) return WLM_OK;
  const int is_whole = is_whole_message(o->message);
  WLM_CHECK(check_beside_message(o, is_whole));
  const int size = snprintf(o->message_text, sizeof o->message_text, "%s%s%s",
                            is_whole ? "" : wlmi_reduce_name(o->problem.reduce), is_whole ? "" : "=", o->message);
  if (size < 0 || (size_t)size >= sizeof o->message_text)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--message has %d characters, at most %d are allowed", size,
                     WLMI_CUSTOM_TEXT - 1);
  o->problem.operation = WLM_MESSAGE;
  o->problem.reduce = WLM_CUSTOM;
  o->problem.custom = o->message_text;
  if (only_reads_positions(&o->problem)) o->problem.want_argmax = 0;
  return WLM_OK;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

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
    {"wlm_problem: a message", "--message"},
    {"WLM_ARGMAX_GRADIENT, see wlm_execute_args.argmax_db", "the gradients by argmax"},
    {"op:activation", "--epilogue"},
};

static void put_in_words_of_options(const char *detail, int is_message, wlmi_text *out) {
  if (is_message && !strncmp(detail, "op:", 3)) { /* what is wrong with the text */
    wlmi_text_puts(out, "--message: ");
    detail += 3 + strspn(detail + 3, " ");
  }
  while (*detail) {
    size_t i = 0, size = 1;
    while (i < sizeof words / sizeof *words && strncmp(detail, words[i].library, strlen(words[i].library))) i++;
    if (i < sizeof words / sizeof *words) {
      size = strlen(words[i].library);
      wlmi_text_puts(out, is_message && !strcmp(words[i].command, "--op") ? "--message" : words[i].command);
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

int wlmi_cli_make_problem(wlmi_cli_options *o, const char *command, int knows_widths) {
  wlm_status status = take_message(o);
  wlm_problem problem = o->problem;
  wlmi_spec spec;
  for (int i = 0; i < (knows_widths ? o->n_count : 1) && status == WLM_OK; i++) {
    problem.n = knows_widths ? o->n[i] : problem.heads;
    status = wlmi_cli_spec(&problem, o->rowptr_type, o->colind_type, problem.dense_type, 1, &spec);
    if (status == WLM_OK && knows_widths) status = check_strides(o, problem.n);
  }
  if (status == WLM_OK) return 1;
  wlmi_text text = {0};
  put_in_words_of_options(wlm_error_detail(), o->message != NULL, &text);
  wlmi_print_message("warploom %s: %s", command, text.data ? text.data : "out of memory");
  wlmi_text_release(&text);
  return 0;
}
