#include "bench/block_check.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/csr/transpose.h"
#include "core/reference/reference.h"
#include "tuner/tolerance.h"

enum { MOST_ROWS = 4096, NAN_BYTE = 0xFF, LARGE_BYTE = 0x7E, BASELINE_LEEWAY = 16 };

static wlm_status choose_rows(wlmi_block_check *check) {
  check->row_count = check->a->rows < MOST_ROWS ? check->a->rows : MOST_ROWS;
  wlm_status status = wlmi_alloc_array(check->row_count, sizeof *check->rows, "rows", (void **)&check->rows);
  int64_t longest = 0;
  for (int64_t i = 0; status == WLM_OK && i < check->row_count; i++) {
    const int64_t row = check->rows[i] = i * check->a->rows / check->row_count;
    const int64_t edges = check->a->rowptr[row + 1] - check->a->rowptr[row];
    longest = edges > longest ? edges : longest;
  }
  check->tolerance = wlmi_tolerance(&check->problem, longest);
  return status;
}

wlm_status wlmi_block_check_create(const wlmi_csr_host *block, int transposed, int64_t n, const float *b,
                                   wlmi_block_check *check) {
  wlm_status status;
  *check = (wlmi_block_check){.problem = WLM_PROBLEM_INIT};
  check->problem.n = n;
  check->a = transposed ? &check->transposed : block;
  if (transposed) WLM_TRY(wlmi_csr_host_transpose(block, &check->transposed));
  WLM_TRY(choose_rows(check));
  WLM_TRY(wlmi_alloc_array(check->row_count * n, sizeof *check->expected, "reference", (void **)&check->expected));
  WLM_TRY(wlmi_alloc_array(check->row_count * n, sizeof *check->scale, "reference", (void **)&check->scale));
  WLM_TRY(wlmi_alloc_array(check->a->rows * n, sizeof *check->c, "C", (void **)&check->c));
  wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  call.b = b;
  const wlmi_reference_result expected = {check->expected, check->scale, NULL};
  WLM_TRY(wlmi_reference_rows(check->a, &check->problem, &call, check->rows, check->row_count, &expected));
done:
  if (status != WLM_OK) wlmi_block_check_release(check);
  return status;
}

void wlmi_block_check_release(wlmi_block_check *check) {
  wlmi_csr_host_release(&check->transposed);
  wlmi_free(check->rows);
  wlmi_free(check->expected);
  wlmi_free(check->scale);
  wlmi_free(check->c);
  *check = (wlmi_block_check){0};
}

static int all_finite(const float *c, int64_t count) {
  int finite = 1;
#pragma omp parallel for reduction(&& : finite)
  for (int64_t i = 0; i < count; i++) finite = finite && isfinite(c[i]);
  return finite;
}

wlm_status wlmi_block_check_run(const wlmi_block_check *check, wlmi_device *device, const wlmi_block_method *method,
                                const wlmi_block_product *product, double *max_rel_err) {
  const int64_t n = check->problem.n, count = check->a->rows * n;
  const size_t size = (size_t)count * sizeof *check->c;
  wlm_status status;
  WLM_TRY(device->ops->fill(device, product->c, method->is_ours ? NAN_BYTE : LARGE_BYTE, size));
  WLM_TRY(device->ops->synchronize(device, NULL)); /* fill uses another stream */
  WLM_TRY(method->multiply(method->user, product));
  WLM_TRY(device->ops->synchronize(device, product->stream));
  WLM_TRY(device->ops->copy_out(device, check->c, product->c, size));
  const double error =
      wlmi_reference_error(WLM_F32, check->c, n, check->rows, check->row_count, n, check->expected, check->scale);
  const double tolerance = check->tolerance * (method->is_ours ? 1 : BASELINE_LEEWAY);
  *max_rel_err = fmax(*max_rel_err, error);
  if (!(error <= tolerance))
    status = wlmi_fail(WLM_ERR_MISMATCH, "%s: an error of %.3g in a block of %lld x %lld, beyond %.3g", method->name,
                       error, (long long)check->a->rows, (long long)check->a->cols, tolerance);
  else if (!all_finite(check->c, count))
    status = wlmi_fail(WLM_ERR_MISMATCH, "%s: a result of a block of %lld x %lld was not written or is not finite",
                       method->name, (long long)check->a->rows, (long long)check->a->cols);
done:
  return status;
}
