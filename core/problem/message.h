/* A message: an operation as a table of operands and results, read from a text (warploom_message.h describes it). */
#pragma once

#include "core/problem/expression.h"
#include "warploom/warploom_message.h"

typedef enum wlmi_result_kind {
  WLMI_RESULT_SUM,
  WLMI_RESULT_MEAN,
  WLMI_RESULT_MAX,
  WLMI_RESULT_MIN,
  WLMI_RESULT_PROD,
  WLMI_RESULT_SOFTMAX,
  WLMI_RESULT_SCORE, /* two numbers for each head of a row; the results before have n */
  WLMI_RESULT_EDGE,
  WLMI_RESULT_EDGE_SUM,
  WLMI_RESULT_KINDS
} wlmi_result_kind;
extern const char *const wlmi_result_kind_names[WLMI_RESULT_KINDS];
extern const char *const wlmi_place_names[]; /* by wlm_place */
extern const char *const wlmi_width_names[]; /* by wlm_width */

/* What stands behind an operand besides its place and width. */
typedef enum wlmi_source {
  WLMI_SOURCE_MEMORY, /* an array of the call */
  WLMI_SOURCE_VALUES, /* a: the values of A */
  WLMI_SOURCE_DEGREE, /* the edges of the row of A */
  WLMI_SOURCE_NUMBER, /* a scalar of the call */
  WLMI_SOURCE_KEPT    /* a scalar of the call says how many edges are dropped, and a hash which */
} wlmi_source;

typedef struct wlmi_message_operand {
  wlm_place place;
  wlm_width width;
  wlmi_source source;
} wlmi_message_operand;

typedef struct wlmi_message_result {
  wlmi_result_kind kind;
  wlmi_expression value; /* over the message's operands and sums */
} wlmi_message_result;

enum { WLMI_MAX_SUMS = 8, WLMI_MAX_NAMES = WLM_MAX_OPERANDS + WLMI_MAX_SUMS };

typedef struct wlmi_message {
  int operands, sums, results;
  char name[WLMI_MAX_NAMES][WLM_OPERAND_NAME];
  const char *names[WLMI_MAX_NAMES]; /* of the operands, then of the sums; the expressions point here */
  wlmi_message_operand operand[WLM_MAX_OPERANDS];
  wlmi_expression sum[WLMI_MAX_SUMS]; /* over the operands and the sums before it */
  wlmi_message_result result[WLM_MAX_RESULTS];
} wlmi_message;

/* WLM_ERR_INVALID_ARGUMENT naming the part, the column and what to write instead. The message must not be moved. */
wlm_status wlmi_message_parse(const char *text, wlmi_message *message);
void wlmi_message_release(wlmi_message *message); /* also of a zeroed one */
/* The normal form; parsing it gives the same text again. */
void wlmi_message_print(const wlmi_message *message, wlmi_text *text);

int wlmi_message_score(const wlmi_message *message); /* the result that is the score; -1 = there is none */
/* Whether an operand or a result has a line of n for each edge. Then most of the memory goes to the edges; otherwise
 * the message reads lines of columns, as a product does. */
int wlmi_message_has_edge_lines(const wlmi_message *message);
/* The elements of a line of an operand or result. Two widths read the pairs of numbers that a score gives. */
int64_t wlmi_width_columns(const wlm_problem *problem, wlm_width width);
int wlmi_width_is_pair(wlm_width width);
wlm_width wlmi_result_width(wlmi_result_kind kind);
int wlmi_result_is_of_row(wlmi_result_kind kind);  /* reduced over the edges of a row, or of a column with transpose */
int wlmi_result_is_extreme(wlmi_result_kind kind); /* max or min, which have positions */

/* The derivative of an expression by one of its operands; leaves *text empty where it is 0. */
wlm_status wlmi_expression_derive(const wlmi_expression *expression, int operand, wlmi_text *text);
/* The text of the message that computes the gradients by the operands in `list`, "x" or "b,k,e", as
 * wlm_message_gradient says; *transpose = 1 where it walks A^T. */
wlm_status wlmi_message_gradient(const wlmi_message *message, const char *list, const wlm_sampling *sampling,
                                 wlmi_text *text, int *transpose);
