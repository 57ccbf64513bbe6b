#include "support/position_check.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/problem/spec.h"
#include "core/reference/reference.h"

enum { GUARD = 64 };

static int64_t element(const void *from, wlm_index type, int64_t index) {
  if (type == WLM_I16) return ((const uint16_t *)from)[index];
  return type == WLM_I64 ? ((const int64_t *)from)[index] : ((const int32_t *)from)[index];
}

static size_t element_size(const position_check *c) { return wlmi_index_size(c->problem->argmax_type); }

wlm_status position_check_make(wlmi_device *device, const wlmi_csr_host *a, const wlm_problem *problem,
                               const wlm_execute_args *call, const void *order, wlm_index order_type, int shift,
                               position_check *c) {
  wlm_problem of_rows = *problem; /* a is op(A); neither C nor the epilogue change positions */
  wlm_execute_args plain = *call;
  of_rows.transpose = 0;
  of_rows.epilogue = (wlm_epilogue){0, NULL};
  plain.beta = 0;
  *c = (position_check){
      .device = device, .a = a, .problem = problem, .ldc = call->ldc ? call->ldc : problem->n, .first = GUARD + shift};
  c->count = a->rows * c->ldc + 2 * GUARD;
  WLM_CHECK(wlmi_alloc_array(a->rows * problem->n, sizeof *c->expected, "positions", (void **)&c->expected));
  WLM_CHECK(wlmi_reference_rows(a, &of_rows, &plain, NULL, a->rows, &(wlmi_reference_result){NULL, NULL, c->expected}));
  for (int64_t i = 0; order && i < a->rows * problem->n; i++)
    if (c->expected[i] >= 0) c->expected[i] = element(order, order_type, c->expected[i]);
  for (int64_t i = 0; problem->argmax_type == WLM_I16 && i < a->rows * problem->n; i++)
    c->expected[i] &= UINT16_MAX; /* of an empty row, too */
  WLM_CHECK(wlmi_alloc_array(c->count, element_size(c), "positions", (void **)&c->poison));
  WLM_CHECK(wlmi_alloc_array(c->count, element_size(c), "positions", (void **)&c->after));
  memset(c->poison, 0xa5, (size_t)c->count * element_size(c));
  return device->ops->allocate(device, (size_t)c->count * element_size(c), &c->memory);
}

void position_check_release(position_check *c) {
  if (c->memory) c->device->ops->release(c->device, c->memory);
  wlmi_free(c->expected);
  wlmi_free(c->poison);
  wlmi_free(c->after);
  *c = (position_check){0};
}

wlm_status position_check_begin(const position_check *c, void **arg) {
  *arg = (char *)c->memory + (size_t)c->first * element_size(c);
  return c->device->ops->copy_in(c->device, c->memory, c->poison, (size_t)c->count * element_size(c));
}

static int64_t got(const position_check *c, int64_t index) { return element(c->after, c->problem->argmax_type, index); }

wlm_status position_check_end(const position_check *c) {
  const wlm_problem *p = c->problem;
  const size_t size = element_size(c);
  wlm_status status = c->device->ops->copy_out(c->device, c->after, c->memory, (size_t)c->count * size);
  for (int64_t i = 0; i < c->count && status == WLM_OK; i++) {
    const int64_t k = i - c->first, row = k >= 0 && c->ldc ? k / c->ldc : -1, column = row >= 0 ? k % c->ldc : -1;
    if (row < 0 || row >= c->a->rows || column >= p->n) {
      if (memcmp(c->poison + (size_t)i * size, c->after + (size_t)i * size, size))
        status = wlmi_fail(WLM_ERR_MISMATCH, "writes arg at %lld, outside of its rows x n", (long long)k);
    } else if (got(c, i) != c->expected[row * p->n + column]) {
      status = wlmi_fail(WLM_ERR_MISMATCH, "arg[%lld,%lld] is %lld, not %lld", (long long)row, (long long)column,
                         (long long)got(c, i), (long long)c->expected[row * p->n + column]);
    }
  }
  return status;
}
