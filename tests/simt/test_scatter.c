/* Cases that the covering set may miss: every variant of the families that walk A itself for a product with A^T, in
 * place and through the workspace, with and without a last pass, with heads and with vectors of every width. */
#include "simt/shim/simt_device.h"
#include "support/kernel_check.h"
#include "support/parallel.h"
#include "support/test.h"

static const struct point {
  wlm_message message;
  wlm_type type;
  wlm_index rowptr, colind;
  int64_t n, heads;
  int has_values, has_bias;
  const char *activation;
} points[] = {{WLM_MUL, WLM_F32, WLM_I32, WLM_I32, 64, 1, 1, 0, NULL},
              {WLM_MUL, WLM_F32, WLM_I64, WLM_I64, 66, 3, 1, 1, NULL},
              {WLM_COPY_A, WLM_F32, WLM_I32, WLM_I64, 33, 1, 1, 0, "relu"},
              {WLM_MUL, WLM_F16, WLM_I32, WLM_I32, 40, 1, 1, 1, "relu"},
              {WLM_ADD, WLM_BF16, WLM_I64, WLM_I32, 12, 3, 1, 0, NULL},
              {WLM_DIV, WLM_F64, WLM_I32, WLM_I32, 6, 1, 1, 0, NULL},
              {WLM_COPY_B, WLM_F32, WLM_I32, WLM_I32, 128, 1, 0, 1, "relu"}};

typedef struct suite {
  wlmi_device *device;
  wlmi_generator *generator;
  struct entry {
    wlmi_spec spec;
    const char *variant;
  } entries[256];
  int64_t count;
} suite;

static void describe(void *user, int64_t index) {
  const struct entry *entry = &((const suite *)user)->entries[index];
  fprintf(stderr, "%s, n = %lld\n", entry->variant, (long long)entry->spec.problem.n);
}

static int one(void *user, int64_t index) {
  const suite *s = user;
  const struct entry *entry = &s->entries[index];
  const kernel_check check = {.device = s->device, .spec = &entry->spec, .runs = 2, .seed = (uint64_t)index + 3};
  HELD(wlmi_program) program = {0};
  simt_device_seed(s->device, (uint64_t)index + 1);
  wlm_status status =
      wlmi_generator_emit(s->generator, entry->variant, &entry->spec, &s->device->info.limits, &program);
  if (status == WLM_OK && !program.walks_a) status = wlmi_fail(WLM_ERR_MISMATCH, "walks op(A)");
  if (status == WLM_OK) status = kernel_check_program(&check, &program);
  if (status == WLM_OK) return 0;
  fprintf(stderr, "%s: ", wlm_error_detail());
  describe(user, index);
  return 1;
}

static wlmi_spec spec_of(const struct point *point) {
  wlm_problem problem =
      PROBLEM(.transpose = 1, .message = point->message, .n = point->n, .heads = point->heads,
              .dense_type = point->type, .epilogue.bias = point->has_bias, .epilogue.activation = point->activation);
  wlm_csr csr = CSR(.value_type = point->type, .rowptr_type = point->rowptr, .colind_type = point->colind,
                    .values = point->has_values ? point : NULL);
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

TEST(every_variant) {
  enum { POINTS = sizeof points / sizeof *points };
  static suite s;
  const wlmi_candidate_list *names[POINTS];
  assert_status(WLM_OK, simt_device_open(&s.device));
  assert_status(WLM_OK, wlmi_generator_create(NULL, &s.generator));
  for (int i = 0; i < POINTS; i++) {
    const wlmi_spec spec = spec_of(&points[i]);
    const int64_t before = s.count;
    assert_status(WLM_OK, wlmi_generator_describe(s.generator, &spec, &s.device->info.limits, &names[i]));
    for (int64_t k = 0; k < names[i]->count; k++)
      if (!strncmp(names[i]->candidates[k].variant, "scatter/", 8))
        s.entries[s.count++] = (struct entry){spec, names[i]->candidates[k].variant};
    assert_in_range(s.count - before, 3, 12); /* few enough variants to consider all for a matrix that is used once */
  }
  assert_int_equal(test_in_parallel(s.count, one, describe, &s), 0);
  for (int i = 0; i < POINTS; i++) wlmi_candidates_drop(names[i]);
  wlmi_generator_destroy(s.generator);
  s.device->ops->close(s.device);
}

/* The families that walk A serve only sums with A^T, and no deterministic problem. */
TEST(other_problems_are_refused) {
  const char *const variant = "scatter/lanes=16,vector=4,share=32";
  const char *const says[] = {"", "transposed products alone", "not deterministic", "atomic form", "atomic form"};
  OWN(wlmi_device, device, simt_device_open(&device));
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int i = 0; i < 5; i++) {
    wlmi_spec spec = spec_of(&points[0]);
    HELD(wlmi_text) reason = {0};
    spec.problem.transpose = i != 1;
    spec.problem.policy.deterministic = i == 2;
    if (i >= 3) spec.problem.reduce = i == 3 ? WLM_MEAN : WLM_MAX;
    assert_status(WLM_OK, wlmi_generator_refusal(generator, variant, &spec, &device->info.limits, &reason));
    if (!i) assert_int_equal(reason.size, 0);
    if (i) assert_contains(reason.data, says[i]);
  }
}
