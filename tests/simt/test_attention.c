/* Cases that the covering set may miss: attention and its gradient with every family, and with heads that fit a group
 * of lanes, no vector, or no group. */
#include "runtime/devices.h"
#include "simt/shim/simt_device.h"
#include "support/kernel_check.h"
#include "support/test.h"

static const struct point {
  int64_t n, heads;
  wlm_type type, values;
  int has_values;
  wlm_score score;
  wlm_index rowptr, colind;
  int bias; /* and dropout */
} points[] = {{64, 1, WLM_F32, WLM_F32, 1, WLM_SCORE_GAT, WLM_I32, WLM_I32, 1},
              {21, 3, WLM_BF16, WLM_BF16, 1, WLM_SCORE_GAT, WLM_I32, WLM_I64, 0},
              {256, 1, WLM_F32, WLM_F32, 0, WLM_SCORE_GAT, WLM_I32, WLM_I32, 0},
              {64, 8, WLM_F32, WLM_F32, 0, WLM_SCORE_GATV2, WLM_I32, WLM_I32, 1},
              {21, 3, WLM_BF16, WLM_F32, 1, WLM_SCORE_GATV2, WLM_I64, WLM_I64, 0},
              {32, 4, WLM_F32, WLM_F32, 0, WLM_SCORE_DOT, WLM_I32, WLM_I32, 1},
              {21, 3, WLM_F16, WLM_F32, 1, WLM_SCORE_DOT, WLM_I64, WLM_I64, 0}};

enum { FORWARD, GRADIENT, ROWS, PASSES };

static void check_points(wlmi_device *device, int families) {
  GET(wlmi_generator *, generator, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof points / sizeof *points * PASSES; i++) {
    const struct point *p = &points[i / PASSES];
    const int pass = (int)(i % PASSES);
    if (pass == ROWS && p->score == WLM_SCORE_GAT) continue;
    wlm_problem problem =
        PROBLEM(.operation = pass == ROWS ? WLM_ATTENTION_ROWS : WLM_ATTENTION, .n = p->n, .heads = p->heads,
                .score = p->score, .transpose = pass == GRADIENT, .dense_type = p->type, .dropout = p->bias,
                .epilogue.bias = p->bias && pass == FORWARD);
    wlm_csr csr = CSR(.rowptr_type = p->rowptr, .colind_type = p->colind, .value_type = p->values,
                      .values = p->has_values ? &csr : NULL);
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    assert_int_equal(kernel_check_families(device, generator, &spec, 2, 3), families);
  }
  wlmi_generator_destroy(generator);
  device->ops->close(device);
}

TEST(every_family_of_cuda) {
  GET(wlmi_device *, device, simt_device_open(&device));
  simt_device_seed(device, 3);
  check_points(device, 3);
}

/* The forms that an archive has: the columns of a head are read at run time. */
TEST(every_family_at_any_width) {
  static const struct point gradients[] = {{.n = 7, .heads = 1}, {.n = 130, .heads = 1}, {.n = 72, .heads = 3}};
  GET(wlmi_device *, device, simt_device_open(&device));
  device->info.limits.any_width = 1;
  GET(wlmi_generator *, generator, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++) {
    wlm_problem problem = PROBLEM(.operation = WLM_SDDMM, .n = gradients[i].n, .heads = gradients[i].heads);
    wlm_csr csr = WLM_CSR_INIT;
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    assert_int_equal(kernel_check_families(device, generator, &spec, 2, 3), 2);
  }
  wlmi_generator_destroy(generator);
  check_points(device, 3);
}

TEST(every_family_of_the_host) {
  GET(wlmi_device *, device, wlmi_host_device_open(&device));
  check_points(device, 2);
}
