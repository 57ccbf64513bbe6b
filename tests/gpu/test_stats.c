/* Compares the stats that a GPU measures with the host's, and builds A^T in a captured graph, on matrices of real
 * shapes. */
#include "core/csr/stats.h"
#include "core/csr/transpose.h"
#include "core/synth/twin.h"
#include "runtime/sort_device.h"
#include "runtime/stats_device.h"
#include "runtime/validate.h"
#include "support/gpu.h"
#include "support/loaded.h"
#include "support/test.h"

/* A matrix on the host, and the same matrix with the given types on the device. */
typedef struct both {
  wlmi_csr_host source;
  wlm_csr host, device;
} both;

static void both_make(both *b, const char *name, wlm_index type) {
  *b = (both){.host = WLM_CSR_INIT};
  assert_status(WLM_OK, wlmi_twin_make(name, &b->source));
  const size_t size = (size_t)(b->source.rows + 1) * wlmi_index_size(type);
  void *rowptr = malloc(size);
  assert_non_null(rowptr);
  for (int64_t i = 0; i <= b->source.rows; i++) {
    if (type == WLM_I64)
      ((int64_t *)rowptr)[i] = b->source.rowptr[i];
    else
      ((int32_t *)rowptr)[i] = (int32_t)b->source.rowptr[i];
  }
  b->host.rows = b->source.rows;
  b->host.cols = b->source.cols;
  b->host.nnz = b->source.nnz;
  b->host.rowptr = rowptr;
  b->host.rowptr_type = type;
  b->host.colind = b->source.colind;
  b->device = b->host;
  b->device.rowptr = test_gpu_copy(rowptr, size);
  b->device.colind = test_gpu_copy(b->source.colind, (size_t)b->source.nnz * sizeof *b->source.colind);
}

static void both_release(both *b) {
  wlmi_device *device = test_gpu();
  device->ops->release(device, (void *)b->device.rowptr);
  device->ops->release(device, (void *)b->device.colind);
  free((void *)b->host.rowptr);
  wlmi_csr_host_release(&b->source);
}

static void check_stats(const both *b, const loaded *l) {
  wlmi_device *device = test_gpu();
  const wlm_csr *host = &b->host;
  const size_t size = wlmi_stats_scratch_size(&b->device);
  wlm_stats expected, got, again;
  void *scratch;
  assert_status(WLM_OK, wlmi_stats_compute(host->rowptr, host->rowptr_type, host->rows, host->cols, host->nnz,
                                           host->colind, host->colind_type, &expected));
  assert_status(WLM_OK, device->ops->allocate_on(device, NULL, size, &scratch));
  assert_status(WLM_OK, wlmi_stats_measure(device, l->kernels, &b->device, NULL, scratch, &got));
  for (int i = 0; i < 20; i++) {
    assert_status(WLM_OK, wlmi_stats_measure(device, l->kernels, &b->device, NULL, scratch, &again));
    assert_memory_equal(&again, &got, sizeof got);
  }
  assert_status(WLM_OK, wlmi_stats_measure_fingerprint(device, l->kernels, &b->device, NULL, scratch, &got));
  device->ops->release_on(device, NULL, scratch, size);
  assert_true(fabs(got.cv - expected.cv) <= 1e-6 * expected.cv);
  assert_true(fabs(got.top_share - expected.top_share) <= 0.01 * expected.top_share);
  got.cv = expected.cv;
  got.top_share = expected.top_share;
  assert_memory_equal(&got, &expected, sizeof got);
}

typedef struct making {
  const both *matrix;
  const loaded *kernels;
  wlmi_transpose_layout layout;
  char *memory;
} making;

static wlm_status make_transpose(void *user, void *stream) {
  const making *m = user;
  return wlmi_transpose_enqueue(test_gpu(), m->kernels->kernels, &m->matrix->device, m->memory + m->layout.rowptr,
                                m->memory + m->layout.colind, m->memory + m->layout.order,
                                m->memory + m->layout.scratch, stream);
}

static void check_transpose(const both *b, const loaded *l, const char *name) {
  wlmi_device *device = test_gpu();
  const wlm_csr *csr = &b->device;
  const size_t offset = wlmi_index_size(csr->rowptr_type);
  const size_t sizes[] = {(size_t)(csr->cols + 1) * offset, (size_t)csr->nnz * 4, (size_t)csr->nnz * offset};
  making m = {.matrix = b, .kernels = l};
  wlmi_timer *timer;
  void *expected[3];
  double seconds;
  assert_status(WLM_OK, wlmi_transpose_layout_of(csr, &m.layout));
  assert_status(WLM_OK, device->ops->allocate(device, m.layout.size, (void **)&m.memory));
  /* captures the building of A^T */
  assert_status(WLM_OK, device->ops->timer_create(device, make_transpose, &m, 1, &timer));
  assert_status(WLM_OK, device->ops->timer_sample(timer, NULL, 0, &seconds));
  device->ops->timer_destroy(timer);
  print_message("%s: A^T of %lld columns and %lld non-zeros in %.1f us\n", name, (long long)csr->cols,
                (long long)csr->nnz, 1e6 * seconds);
  for (int i = 0; i < 3; i++) assert_non_null(expected[i] = malloc(sizes[i]));
  assert_status(WLM_OK, wlmi_transpose_pattern(&b->host, expected[0], expected[1], expected[2]));
  const size_t places[] = {m.layout.rowptr, m.layout.colind, m.layout.order};
  for (int i = 0; i < 3; i++) {
    FREED void *got = malloc(sizes[i]);
    assert_status(WLM_OK, device->ops->copy_out(device, NULL, got, m.memory + places[i], sizes[i]));
    assert_memory_equal(got, expected[i], sizes[i]);
    free(expected[i]);
  }
  device->ops->release(device, m.memory);
}

TEST(real_shapes) {
  static const char *const names[] = {"uniform:rows=65536,d=8", "uniform:rows=1000,d=1100,cols=5000",
                                      "twin:arxiv,scale=0.1", "twin:youtube,scale=0.1", "twin:roadnet-ca,scale=0.1"};
  test_gpu();
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    HELD(loaded) stats = loaded_helper(test_gpu(), WLMI_HELPER_STATS, (wlm_index)type, WLM_I32, 0);
    HELD(loaded) transpose = loaded_helper(test_gpu(), WLMI_HELPER_TRANSPOSE, (wlm_index)type, WLM_I32, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      MAKE(both, b, names[i], (wlm_index)type);
      check_stats(&b, &stats);
      check_transpose(&b, &transpose, names[i]);
    }
  }
}

TEST(memory_of_a_stream) {
  wlmi_device *device = test_gpu();
  unsigned char out[1000];
  void *memory, *again;
  assert_status(WLM_OK, device->ops->allocate_on(device, NULL, sizeof out, &memory));
  assert_int_equal((uintptr_t)memory % 256, 0);
  assert_status(WLM_OK, device->ops->fill(device, NULL, memory, 0xab, sizeof out));
  assert_status(WLM_OK, device->ops->copy_out(device, NULL, out, memory, sizeof out));
  for (size_t i = 0; i < sizeof out; i++) assert_int_equal(out[i], 0xab);
  device->ops->release_on(device, NULL, memory, sizeof out);
  assert_status(WLM_OK, device->ops->allocate_on(device, NULL, sizeof out, &again));
  assert_status(WLM_OK, device->ops->wait(device, NULL));
  device->ops->release_on(device, NULL, again, sizeof out);
}

/* Validates the matrix unchanged, then with a column out of range, then with decreasing offsets in an earlier row. */
TEST(validation) {
  wlmi_device *device = test_gpu();
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    static const int64_t low[2] = {0, 0};
    const int32_t outside = INT32_MAX;
    const size_t width = wlmi_index_size((wlm_index)type);
    struct wlm_row_fault fault;
    HELD(loaded) l = loaded_helper(device, WLMI_HELPER_VALIDATE, (wlm_index)type, WLM_I32, 0);
    void *scratch;
    MAKE(both, b, "synth:rows=50000,d=20,cv=2", (wlm_index)type);
    /* the last entry of row 40,000 or of the last non-empty row before it */
    const int64_t *rowptr = b.source.rowptr, position = rowptr[40001] - 1;
    int64_t bad_row = 40000;
    while (rowptr[bad_row] > position) bad_row--;
    assert_status(WLM_OK, device->ops->allocate(device, sizeof(struct wlm_validation), &scratch));
    assert_status(WLM_OK, wlmi_validate_by_kernel(device, l.kernels[0], &b.device, NULL, scratch, &fault));
    assert_int_equal(fault.row, -1);
    assert_status(WLM_OK, device->ops->copy_in(device, (int32_t *)(uintptr_t)b.device.colind + position, &outside,
                                               sizeof outside));
    assert_status(WLM_OK, wlmi_validate_by_kernel(device, l.kernels[0], &b.device, NULL, scratch, &fault));
    assert_int_equal(fault.row, bad_row);
    assert_int_equal(fault.position, position);
    assert_int_equal(fault.column, outside);
    assert_status(WLM_OK, device->ops->copy_in(device, (char *)(uintptr_t)b.device.rowptr + 30000 * width, low, width));
    assert_status(WLM_OK, wlmi_validate_by_kernel(device, l.kernels[0], &b.device, NULL, scratch, &fault));
    assert_int_equal(fault.row, 29999);
    assert_int_equal(fault.to, 0);
    device->ops->release(device, scratch);
  }
}

GROUP(NULL, test_gpu_close)
