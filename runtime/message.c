/* The table and the gradient of a message, from its text. */
#include "core/problem/message.h"

#include <string.h>

#include "core/problem/structs.h"

static wlm_status parse(const wlm_problem *problem, wlmi_message *message) {
  if (problem->operation != WLM_MESSAGE || !problem->custom)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem: operation must be WLM_MESSAGE, with its text in custom");
  return wlmi_message_parse(problem->custom, message);
}

static void fill(const wlmi_message *message, int transpose, wlm_message_table *table) {
  static const wlm_reduce reduces[WLMI_RESULT_KINDS] = {WLM_SUM, WLM_MEAN, WLM_MAX, WLM_MIN, WLM_PROD,
                                                        WLM_SUM, WLM_SUM,  WLM_SUM, WLM_SUM};
  table->operands = message->operands;
  table->results = message->results;
  for (int i = 0; i < message->operands; i++) {
    memcpy(table->operand[i].name, message->name[i], sizeof table->operand[i].name);
    table->operand[i].place = message->operand[i].place;
    table->operand[i].width = message->operand[i].width;
  }
  for (int r = 0; r < message->results; r++) {
    const wlmi_result_kind kind = message->result[r].kind;
    table->result[r].place = !wlmi_result_is_of_row(kind) ? WLM_PLACE_EDGE
                             : transpose                  ? WLM_PLACE_COLUMN
                                                          : WLM_PLACE_ROW;
    table->result[r].width = wlmi_result_width(kind);
    table->result[r].reduce = reduces[kind];
  }
}

wlm_status wlm_message_describe(const wlm_problem *given, wlm_message_table *table) {
  wlm_problem problem;
  wlm_message_table full = WLM_MESSAGE_TABLE_INIT;
  wlmi_message message = {0};
  WLM_CHECK(wlmi_need("wlm_message_describe", "problem table", given, table));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_problem, given, &problem));
  WLM_CHECK(parse(&problem, &message));
  fill(&message, problem.transpose != 0, &full);
  wlmi_message_release(&message);
  full.size = table->size;
  return wlmi_finish(wlmi_struct_write(&wlmi_struct_message_table, &full, table));
}

wlm_status wlm_message_gradient(const wlm_problem *given, const char *by, wlm_problem *gradient, char **text) {
  wlm_problem problem;
  wlmi_message message = {0};
  wlmi_text made = {0};
  int transpose = 0;
  if (text) *text = NULL;
  wlm_status status = wlmi_need("wlm_message_gradient", "problem by gradient text", given, by, gradient, text);
  if (status != WLM_OK) return status;
  WLM_TRY(wlmi_struct_read(&wlmi_struct_problem, given, &problem));
  if (problem.transpose) {
    status = wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_message_gradient: of a message with transpose; make it for A^T");
    goto done;
  }
  WLM_TRY(parse(&problem, &message));
  WLM_TRY(wlmi_message_gradient(&message, by, &problem.sampling, &made, &transpose));
  WLM_TRY(wlmi_text_take(&made, text));
  problem.size = gradient->size;
  problem.transpose = transpose;
  problem.want_argmax = 0;
  problem.epilogue = (wlm_epilogue){0};
  problem.custom = *text;
  WLM_TRY(wlmi_struct_write(&wlmi_struct_problem, &problem, gradient));
done:
  wlmi_message_release(&message);
  wlmi_text_release(&made);
  if (status != WLM_OK && text) {
    wlm_string_free(*text);
    *text = NULL;
  }
  return wlmi_finish(status);
}
