#include "support/orders_check.h"

#include <stdlib.h>
#include <string.h>

#include "support/asserts.h"

static int64_t place_of(const dense *d, int64_t line, int64_t column) {
  return d->by_columns ? column * d->ld + line : line * d->ld + column;
}

static size_t bytes_of(const dense *d) {
  const int64_t last = d->by_columns ? d->n - 1 : d->lines - 1, used = d->by_columns ? d->lines : d->n;
  return d->lines && d->n ? (size_t)(last * d->ld + used) * d->size : 0;
}

dense dense_of(const void *from, int64_t lines, int64_t n, size_t size, wlm_order order, int64_t more) {
  dense d = {lines, n, (order == WLM_COLUMN_MAJOR ? lines : n) + more, size, order == WLM_COLUMN_MAJOR, NULL};
  assert_non_null(d.memory = malloc(bytes_of(&d) + 1));
  memset(d.memory, 0xff, bytes_of(&d));
  for (int64_t i = 0; i < lines; i++)
    for (int64_t j = 0; j < n; j++)
      memcpy(d.memory + (size_t)place_of(&d, i, j) * size, (const char *)from + (size_t)(i * n + j) * size, size);
  return d;
}

void dense_end(dense *d, void *to) {
  for (int64_t i = 0; i < d->lines; i++)
    for (int64_t j = 0; j < d->n; j++) {
      char *element = d->memory + (size_t)place_of(d, i, j) * d->size;
      memcpy((char *)to + (size_t)(i * d->n + j) * d->size, element, d->size);
      memset(element, 0xff, d->size);
    }
  for (size_t i = 0; i < bytes_of(d); i++) assert_int_equal((unsigned char)d->memory[i], 0xff);
  free(d->memory);
}

static wlm_status call(wlm_context *context, int is_planned, const wlm_csr *csr, const wlm_problem *problem,
                       const wlm_execute_args *args) {
  return is_planned ? drawn_plan_once(context, csr, problem, *args) : wlm_spmm(context, csr, problem, args);
}

/* The request in these orders; the results become row-major ones without padding. */
static void run(wlm_context *context, const request *r, drawn *a, wlm_problem problem, int is_planned, results *to) {
  const int64_t b_lines = problem.transpose ? a->csr.rows : a->csr.cols;
  const int64_t c_lines = problem.transpose ? a->csr.cols : a->csr.rows, n = problem.n;
  const int64_t more_b = problem.b_order ? 3 : 0, more_c = problem.c_order ? 5 : 0;
  wlm_execute_args args = request_call(r, a, to);
  dense b = dense_of(a->b, b_lines, n, 4, problem.b_order, more_b),
        x = dense_of(a->x, c_lines, n, 4, problem.c_order, more_c),
        c = dense_of(to->c, c_lines, n, 4, problem.c_order, more_c),
        argmax = dense_of(to->argmax, c_lines, n, 4, problem.c_order, more_c),
        db = dense_of(to->db, b_lines, n, 4, problem.b_order, more_b);
  args.b = b.memory, args.c = c.memory, args.argmax = argmax.memory, args.argmax_db = db.memory;
  if (args.x) args.x = x.memory;
  args.ldb = more_b ? b.ld : 0, args.ldc = more_c ? c.ld : 0;
  assert_status(WLM_OK, call(context, is_planned, &a->csr, &problem, &args));
  dense_end(&b, a->b), dense_end(&x, a->x), dense_end(&c, to->c), dense_end(&argmax, to->argmax);
  dense_end(&db, to->db);
}

/* Lets rowptr and colind count from 1. */
static void count_from_one(drawn *a) {
  for (int64_t i = 0; i <= a->csr.rows; i++) a->rowptr[i]++;
  for (int64_t p = 0; p < a->csr.nnz; p++) a->colind[p]++;
  a->csr.base = 1;
}

void orders_check(wlm_context *context, int64_t n, uint64_t seed) {
  static drawn a;
  static results expected, got;
  test_random random = {seed};
  for (int i = 0; i < REQUESTS; i++) {
    const request *r = &requests[i];
    wlm_problem problem = request_problem(r);
    request forward = *r;
    problem.n = n;
    if (problem.n % problem.heads) continue;
    forward.gradient = 0;
    draw_matrix(&a, &random, !r->pattern);
    for (int orders = 0; orders < 4; orders++) {
      problem.b_order = orders & 1 ? WLM_COLUMN_MAJOR : WLM_ROW_MAJOR;
      problem.c_order = orders & 2 ? WLM_COLUMN_MAJOR : WLM_ROW_MAJOR;
      if (orders == 2) count_from_one(&a);
      for (int is_planned = orders ? 0 : 1; is_planned < 2; is_planned++) {
        results *to = orders ? &got : &expected;
        results_begin(to);
        if (r->gradient) {
          wlm_problem product = problem;
          product.operation = WLM_SPMM;
          run(context, &forward, &a, product, is_planned, to);
        }
        run(context, r, &a, problem, is_planned, to);
        if (orders && memcmp(&got, &expected, sizeof got))
          fail_msg("%s, n = %lld, orders %d, %s: other bits than row-major", r->name, (long long)problem.n, orders,
                   is_planned ? "a plan" : "one call");
      }
    }
  }
}
