/* A user-defined operator: parts spelled as expressions, 'message=fmaxf(a*b,0);init=0;reduce=acc+x;finish=acc/degree',
 * and the activation of an epilogue. */
#pragma once

#include "core/problem/expression.h"

typedef enum wlmi_part {
  WLMI_PART_MESSAGE, /* over a, b; absent: the problem's message */
  WLMI_PART_INIT,    /* of the accumulator, and what an empty row gives; neutral for combine */
  WLMI_PART_REDUCE,  /* over acc, x: folds one message */
  WLMI_PART_COMBINE, /* over acc, x: merges two partial results, acc the earlier; absent: rows are never split */
  WLMI_PART_FINISH,  /* over acc, degree: of a row that is not empty; absent: acc */
  WLMI_PARTS
} wlmi_part;
extern const char *const wlmi_part_names[WLMI_PARTS];

typedef struct wlmi_operator {
  wlmi_expression parts[WLMI_PARTS]; /* count = 0 where absent; so is combine for combine=reduce */
  int combine_is_reduce;             /* combine=reduce: reduce is right on partial results as well */
  int any_order;                     /* order=any: the edges of a row may be folded in any order */
} wlmi_operator;

/* WLM_ERR_INVALID_ARGUMENT naming the part, the column and what to write instead. */
wlm_status wlmi_operator_parse(const char *text, wlmi_operator *op);
/* Fills in a part that is absent. */
wlm_status wlmi_operator_parse_part(wlmi_part part, const char *text, wlmi_operator *op);
void wlmi_operator_release(wlmi_operator *op); /* also of a zeroed one */
/* All parts that are there in the order above, each in its normal spelling, joined by ';'. */
void wlmi_operator_print(const wlmi_operator *op, wlmi_text *text);
/* NULL where it is absent. For combine=reduce the part combine is that of reduce. */
const wlmi_expression *wlmi_operator_part(const wlmi_operator *op, wlmi_part part);

/* An expression over x, or the name of a function of one argument: "relu" is "relu(x)". */
wlm_status wlmi_activation_parse(const char *text, wlmi_expression *expression);
