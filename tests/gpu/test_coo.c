/* wlm_csr_from_coo on a GPU: every list of support/coo_check.h and larger ones. */
#include "runtime/context.h"
#include "support/coo_check.h"
#include "support/gpu.h"
#include "support/test.h"

/* CU_STREAM_PER_THREAD: kernels may overlap on it, unlike on the legacy stream. */
#define STREAM ((void *)2)

static void convert(void *user, const wlm_coo *coo) {
  wlmi_device *device = wlmi_context_device(user);
  const size_t index = (size_t)coo->nnz * (coo->index_type == WLM_I64 ? 8 : 4);
  const size_t offset = coo->rowptr_type == WLM_I64 ? 8 : 4, column = coo->colind_type == WLM_I64 ? 8 : 4;
  const struct {
    void *host;
    size_t size;
  } out[] = {{coo->rowptr, (size_t)(coo->rows + 1) * offset},
             {coo->colind, (size_t)coo->nnz * column},
             {coo->perm, coo->perm ? (size_t)coo->nnz * offset : 0}};
  void *row = test_gpu_copy(coo->row, index + !index), *col = test_gpu_copy(coo->col, index + !index), *made[3];
  wlm_coo there = *coo;
  for (int i = 0; i < 3; i++) assert_status(WLM_OK, device->ops->allocate(device, out[i].size + 1, &made[i]));
  there.row = row;
  there.col = col;
  there.rowptr = made[0];
  there.colind = made[1];
  there.perm = coo->perm ? made[2] : NULL;
  there.stream = STREAM;
  assert_status(WLM_OK, wlm_csr_from_coo(user, &there));
  for (int i = 0; i < 3; i++)
    if (out[i].size) assert_status(WLM_OK, device->ops->copy_out(device, STREAM, out[i].host, made[i], out[i].size));
  for (int i = 0; i < 3; i++) device->ops->release(device, made[i]);
  device->ops->release(device, row);
  device->ops->release(device, col);
}

TEST(every_list) {
  OWNED(wlm_context) *context = test_gpu_context();
  for (int number = 0; number < coo_case_count(); number++) {
    const coo_case c = coo_case_of(number);
    coo_check(&c, (uint64_t)number + 1, convert, context);
  }
}

TEST(large_lists) {
  static const coo_case cases[] = {
      {300000, 200000, 3000000, 0, 0, WLM_I64, WLM_I32, WLM_I32, 0},
      {72000, 72000, 123157, 1, 0, WLM_I64, WLM_I32, WLM_I32, 1},
      {20000000, 1000, 1000000, 0, 1, WLM_I32, WLM_I64, WLM_I64, 0},
  };
  OWNED(wlm_context) *context = test_gpu_context();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) coo_check(&cases[i], i + 1, convert, context);
}

GROUP(NULL, test_gpu_close)
