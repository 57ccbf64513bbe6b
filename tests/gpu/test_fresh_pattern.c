/* The kernel right before a product writes its pattern, into memory that the previous product reads. Every candidate
 * that can be rebound gives the same bits as when the host waits in between. */
#include "core/synth/twin.h"
#include "runtime/context_state.h"
#include "runtime/load.h"
#include "runtime/sort_device.h"
#include "support/gpu_fixture.h"
#include "support/test.h"

/* CU_STREAM_PER_THREAD: kernels may overlap on it, unlike on the legacy stream. */
#define STREAM ((void *)2)

enum { ROUNDS = 24, SOURCES = 2, MOST_N = 64 };

/* Writes the patterns of A^T of two matrices in turn, always into the same memory. */
typedef struct writer {
  fixture *f;
  wlm_csr sources[SOURCES];
  wlmi_transpose_layout layouts[SOURCES];
  void *kernels[WLMI_MAX_PASSES];
  void *rowptr, *colind, *order, *scratch;
} writer;

static void *memory_of(fixture *f, size_t size) {
  void *memory;
  assert_status(WLM_OK, f->device->ops->allocate(f->device, size, &memory));
  return memory;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void writer_make(fixture *f, const wlmi_upload *other, writer *w) {
  wlmi_transpose_layout *layout = w->layouts;
  *w = (writer){.f = f, .sources = {*wlmi_matrix_csr(f->upload.matrix), *wlmi_matrix_csr(other->matrix)}};
  for (int i = 0; i < SOURCES; i++) assert_status(WLM_OK, wlmi_transpose_layout_of(&w->sources[i], &layout[i]));
  assert_status(WLM_OK, wlmi_load_helper(f->context, WLMI_HELPER_TRANSPOSE, &w->sources[0], w->kernels));
  w->rowptr = memory_of(f, larger(layout[0].colind, layout[1].colind));
  w->colind = memory_of(f, larger(layout[0].order - layout[0].colind, layout[1].order - layout[1].colind));
  w->order = memory_of(f, larger(layout[0].scratch - layout[0].order, layout[1].scratch - layout[1].order));
  w->scratch = memory_of(f, larger(layout[0].size - layout[0].scratch, layout[1].size - layout[1].scratch));
}

static void writer_release(writer *w) {
  void *const all[] = {w->rowptr, w->colind, w->order, w->scratch};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) w->f->device->ops->release(w->f->device, all[i]);
}

/* Enqueues the kernels that write the pattern; returns the CSR matrix over it, without values. */
static wlm_csr write_pattern(const writer *w, int source) {
  wlm_csr csr = w->sources[source];
  assert_status(WLM_OK, wlmi_transpose_enqueue(w->f->device, w->kernels, &w->sources[source], w->rowptr, w->colind,
                                               w->order, w->scratch, STREAM));
  csr.rows = w->sources[source].cols;
  csr.cols = w->sources[source].rows;
  csr.rowptr = w->rowptr;
  csr.colind = w->colind;
  csr.values = NULL;
  return csr;
}

typedef struct product {
  const writer *w;
  wlm_plan *plan;
  const void *b;
  char *c; /* one result for each round */
  void *workspace;
  size_t c_size, workspace_size;
} product;

/* Operands are small integers, so sums have the same bits in any order. Returns 0 if the plan cannot be rebound. */
static int run(const product *p, int waits) {
  wlmi_device *device = p->w->f->device;
  for (int i = 0; i < ROUNDS; i++) {
    const wlm_csr csr = write_pattern(p->w, i % SOURCES);
    if (waits) assert_status(WLM_OK, device->ops->wait(device, STREAM));
    const wlm_status status = wlm_plan_rebind(p->plan, &csr);
    if (status == WLM_ERR_UNSUPPORTED) return 0;
    assert_status(WLM_OK, status);
    assert_true(wlm_plan_workspace_size(p->plan) <= p->workspace_size);
    wlm_execute_args args = EXECUTE_ARGS(.b = p->b, .c = p->c + (size_t)i * p->c_size, .workspace = p->workspace,
                                         .workspace_size = p->workspace_size, .stream = STREAM);
    assert_status(WLM_OK, wlm_plan_execute(p->plan, &args));
  }
  return 1;
}

static int check_plan(product *p, char *expected, char *got, const char *variant) {
  wlmi_device *device = p->w->f->device;
  const size_t size = ROUNDS * p->c_size;
  assert_status(WLM_OK, device->ops->fill(device, STREAM, p->c, 0xff, size));
  if (!run(p, 1)) return 0;
  assert_status(WLM_OK, device->ops->copy_out(device, STREAM, expected, p->c, size));
  assert_status(WLM_OK, device->ops->fill(device, STREAM, p->c, 0xff, size));
  assert_true(run(p, 0));
  assert_status(WLM_OK, device->ops->copy_out(device, STREAM, got, p->c, size));
  for (int i = 0; i < ROUNDS; i++)
    if (memcmp(expected + (size_t)i * p->c_size, got + (size_t)i * p->c_size, p->c_size))
      fail_msg("%s: round %d differs", variant, i);
  return 1;
}

/* Checks every candidate for the problem; returns how many could be rebound. */
static int check_problem(const writer *w, const wlm_problem *problem, product *p) {
  fixture *f = w->f;
  FREED char *expected = malloc(ROUNDS * p->c_size), *got = malloc(ROUNDS * p->c_size);
  wlm_csr csr = write_pattern(w, 0);
  int checked = 0;
  assert_true(expected && got);
  assert_status(WLM_OK, f->device->ops->wait(f->device, STREAM));
  OWN(wlm_matrix, matrix, wlm_matrix_create(f->context, &csr, NULL, &matrix));
  GET(wlmi_spec, spec, wlmi_spec_make(problem, &csr, &spec));
  OWN(wlmi_candidates, list,
      wlmi_generator_describe(wlmi_context_generator(f->context), &spec, &f->device->info.limits, &list));
  for (int64_t i = 0; i < list->count; i++) {
    assert_status(WLM_OK, wlm_plan_create_variant(f->context, matrix, problem, list->candidates[i].variant, &p->plan));
    checked += check_plan(p, expected, got, list->candidates[i].variant);
    wlm_plan_destroy(p->plan);
  }
  print_message("n = %lld: %d of %lld candidates\n", (long long)problem->n, checked, (long long)list->count);
  return checked;
}

TEST(patterns_written_just_before_are_read) {
  test_needs_nvrtc();
  HELD(writer) w;
  MAKE(fixture, f, "uniform:rows=6000,d=9", WLM_I32);
  HOLD(wlmi_csr_host, host, wlmi_twin_make("synth:rows=5000,d=12,cv=2", &host));
  HOLD(wlmi_upload, other, wlmi_upload_create(f.context, &host, WLM_I32, &other));
  writer_make(&f, &other, &w);
  const size_t elements = 6000 * MOST_N, size = elements * sizeof(float);
  FREED float *b = malloc(size);
  assert_non_null(b);
  for (size_t i = 0; i < elements; i++) b[i] = (float)((i * 2654435761u >> 7) % 17);
  product p = {.w = &w, .c_size = size, .workspace_size = 64 << 20};
  p.b = test_gpu_copy(b, size);
  p.c = memory_of(&f, ROUNDS * size);
  p.workspace = memory_of(&f, p.workspace_size);

  wlm_problem problem = PROBLEM(.message = WLM_COPY_B, .n = MOST_N);
  assert_true(check_problem(&w, &problem, &p) > 0);
  problem.transpose = 1; /* also tests the kernels that scatter */
  assert_true(check_problem(&w, &problem, &p) > 0);
  problem.transpose = 0;
  problem.n = 4;
  assert_true(check_problem(&w, &problem, &p) > 0);
  problem.n = MOST_N;
  problem.sampling.sample = WLM_SAMPLE_FASTRAND;
  problem.sampling.width = 8;
  assert_true(check_problem(&w, &problem, &p) > 0);

  f.device->ops->release(f.device, (void *)(uintptr_t)p.b);
  f.device->ops->release(f.device, p.c);
  f.device->ops->release(f.device, p.workspace);
}

GROUP(NULL, test_gpu_close)
