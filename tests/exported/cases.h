/* The problems and matrices with which an exported library is compared with the full one. Programs of both include
 * this; it uses the public header alone. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"

/* `measured` is how many of the matrices have measurements for the problem. */
typedef struct exported_case {
  wlm_problem problem;
  wlm_index rowptr_type;
  int has_values, measured;
} exported_case;

enum { EXPORTED_CASES = 9, EXPORTED_MATRICES = 10, EXPORTED_MODELLED = 9 };

static inline exported_case exported_case_of(int index) {
  exported_case c = {WLM_PROBLEM_INIT, WLM_I32, 1, 2};
  wlm_problem *p = &c.problem;
  p->n = 32;
  switch (index) {
    case 0: c.measured = EXPORTED_MODELLED; break;
    case 1: p->message = WLM_COPY_B, p->reduce = WLM_MEAN, p->dense_type = WLM_F16, p->n = 8, c.has_values = 0; break;
    case 2: p->message = WLM_COPY_B, p->reduce = WLM_MAX, p->want_argmax = 1, p->n = 16, c.has_values = 0; break;
    case 3: p->operation = WLM_SDDMM, c.has_values = 0; break;
    case 4: p->operation = WLM_ATTENTION, c.has_values = 0; break;
    case 5: p->transpose = 1, p->n = 16; break;
    case 6: p->dense_type = WLM_F64, p->n = 5, c.rowptr_type = WLM_I64; break;
    case 7: p->operation = WLM_ATTENTION, p->transpose = 1, p->n = 16, c.has_values = 0; break;
    default:
      p->operation = WLM_MESSAGE, p->reduce = WLM_CUSTOM, p->custom = "sum=relu(b+e)", p->n = 8, c.has_values = 0;
  }
  return c;
}

typedef struct exported_matrix {
  int64_t rows, cols, nnz;
  int64_t *wide;   /* rowptr */
  int32_t *rowptr; /* the same */
  int32_t *colind;
  double *wide_values;
  float *values; /* the same */
} exported_matrix;

/* A measured matrix of which only the statistics are known, and a problem of it: sums or attention. */
typedef struct exported_statistics {
  wlm_stats stats;
  int64_t n;
  int has_values, attention;
} exported_statistics;

static inline uint32_t exported_draw(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* Rows of varying lengths, some of them empty and some long. The matrices differ in size and skew. */
static inline exported_matrix exported_matrix_of(int index) {
  exported_matrix m = {200 + 170 * (index % 5), 300 + 90 * (index % 4), 0, NULL, NULL, NULL, NULL, NULL};
  uint32_t state = 7 + (uint32_t)index;
  m.wide = malloc((size_t)(m.rows + 1) * sizeof *m.wide);
  m.rowptr = malloc((size_t)(m.rows + 1) * sizeof *m.rowptr);
  m.wide[0] = m.rowptr[0] = 0;
  for (int64_t i = 0; i < m.rows; i++) {
    const uint32_t drawn = exported_draw(&state) >> 16;
    m.wide[i + 1] = m.wide[i] + drawn % (uint32_t)(3 + 4 * index) + (drawn % 61 ? 0 : 40 * index);
    m.rowptr[i + 1] = (int32_t)m.wide[i + 1];
  }
  m.nnz = m.wide[m.rows];
  m.colind = malloc((size_t)(m.nnz + 1) * sizeof *m.colind);
  m.values = malloc((size_t)(m.nnz + 1) * sizeof *m.values);
  m.wide_values = malloc((size_t)(m.nnz + 1) * sizeof *m.wide_values);
  for (int64_t p = 0; p < m.nnz; p++) {
    m.colind[p] = (int32_t)((exported_draw(&state) >> 8) % (uint32_t)m.cols);
    m.wide_values[p] = m.values[p] = (float)((int)(exported_draw(&state) >> 20) - 2048) / 512;
  }
  return m;
}

static inline void exported_matrix_free(exported_matrix *m) {
  free(m->wide);
  free(m->rowptr);
  free(m->colind);
  free(m->values);
  free(m->wide_values);
}

/* The arrays as the case wants them; valid as long as the matrix. */
static inline wlm_csr exported_csr(const exported_case *c, const exported_matrix *m) {
  wlm_csr csr = WLM_CSR_INIT;
  const int wide = c->problem.dense_type == WLM_F64;
  csr.rows = m->rows, csr.cols = m->cols, csr.nnz = m->nnz;
  csr.rowptr_type = c->rowptr_type;
  csr.rowptr = c->rowptr_type == WLM_I64 ? (const void *)m->wide : (const void *)m->rowptr;
  csr.colind = m->colind;
  csr.value_type = wide ? WLM_F64 : WLM_F32;
  if (c->has_values) csr.values = wide ? (const void *)m->wide_values : (const void *)m->values;
  return csr;
}
