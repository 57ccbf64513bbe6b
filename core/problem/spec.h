/* A spec: a problem and the types of its matrix. Generator, store and selection need nothing else of a call except the
 * stats. */
#pragma once

#include "core/base/status.h"

enum { WLMI_CUSTOM_TEXT = 1024 };

typedef struct wlmi_spec {
  wlm_problem problem;
  wlm_index rowptr_type, colind_type;
  wlm_type value_type; /* the dense type where there are no values */
  int has_values;
  int base;           /* of rowptr and colind: 0 or 1 */
  int is_batched;     /* its kernels compute a batch in one launch; without it the batch is launched one by one */
  int has_steps;      /* its kernels take column-major B and C; without it these are copied */
  int has_edge_lines; /* a message of which an operand or a result has a line of n for each edge */
  char custom[WLMI_CUSTOM_TEXT]; /* the user-defined operator or message, normalised; "" = none */
} wlmi_spec;

enum { WLMI_SPEC_KEY = WLMI_CUSTOM_TEXT + 192 };

/* Joins and checks both. WLM_ERR_INVALID_ARGUMENT for invalid values, WLM_ERR_UNSUPPORTED naming the field for valid
 * ones that are not implemented. */
wlm_status wlmi_spec_make(const wlm_problem *problem, const wlm_csr *csr, wlmi_spec *spec);
/* A spec for kernels that depend on a matrix's index types only. */
wlm_status wlmi_spec_of_types(const wlm_csr *csr, wlmi_spec *spec);

/* Of the gradients of a product with argmax indices. */
wlmi_spec wlmi_spec_gradient(const wlmi_spec *product);

/* WLM_ERR_INVALID_ARGUMENT naming a type field whose value is not in its enum, or the base. */
wlm_status wlmi_check_types(const wlm_csr *csr);
/* WLM_ERR_INVALID_ARGUMENT where the field of this name is neither 0 nor 1. */
wlm_status wlmi_check_base(const char *name, int64_t base);
/* Whether edges have values: those of the matrix, or those that each call gives. */
static inline int wlmi_has_values(const wlm_csr *csr) { return csr->values || csr->has_values; }

/* The problem key: identifies a problem in the store, except for N, by operator, types, sampling and heads. It leaves
 * out what never changes the choice of a kernel (alpha, beta, seed, leading dimensions, base, orders of B and C), the
 * batch, which counts as more rows (wlmi_decide), and the epilogue (bias and activation), which changes the kernels but
 * hardly ever the fastest one. Examples:
 *   op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none
 *   op=custom{message=a*b;init=0;reduce=acc+x;combine=reduce},dense=f32,... */
void wlmi_spec_key(const wlmi_spec *spec, char key[WLMI_SPEC_KEY]);

/* Names as the command line, the store and the templates spell them; NULL for a value out of range. */
const char *wlmi_message_name(wlm_message message); /* "copy_b" */
const char *wlmi_reduce_name(wlm_reduce reduce);    /* "sum" */
const char *wlmi_empty_name(wlm_empty empty);       /* "zero" */
const char *wlmi_type_name(wlm_type type);          /* "f32" */
const char *wlmi_index_name(wlm_index index);       /* "i32" */
const char *wlmi_sample_name(wlm_sample sample);    /* "fastrand_coprime" */
const char *wlmi_sample_norm_name(wlm_sample_norm norm);
const char *wlmi_operation_name(wlm_operation operation); /* "sddmm" */
const char *wlmi_score_name(wlm_score score);             /* "gat" */
const char *wlmi_message_text(wlm_message message);       /* as an expression: "b/a" */
/* The reverse; -1 for an unknown name. */
int wlmi_message_from_name(const char *name);
int wlmi_reduce_from_name(const char *name);
int wlmi_type_from_name(const char *name);
int wlmi_index_from_name(const char *name);
int wlmi_operation_from_name(const char *name);
int wlmi_score_from_name(const char *name);
int wlmi_sample_from_name(const char *name);
int wlmi_sample_norm_from_name(const char *name);

/* Whether kernels that get op(A) need A^T: gradients by argmax look edges up in A itself. */
static inline int wlmi_needs_transpose(const wlm_problem *problem) {
  return problem->transpose && problem->operation != WLM_ARGMAX_GRADIENT;
}
/* Whether the operation is WLM_ATTENTION or WLM_ATTENTION_ROWS. */
int wlmi_is_attention(const wlm_problem *problem);
/* Whether a score is a sum over the columns of its head, of q and B or k. */
int wlmi_score_is_sum(wlm_score score);

size_t wlmi_type_size(wlm_type type);
size_t wlmi_index_size(wlm_index index);
enum { WLMI_LONGEST_OF_I16 = 65536 }; /* non-zeros of a row whose positions may be of 16 bits */
