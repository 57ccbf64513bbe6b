/* Cases that the covering set may miss: every family with several values per edge, also transposed, and with numbers of
 * columns per head that no vector or the widest vector divides. */
#include "simt/shim/simt_device.h"
#include "support/kernel_check.h"
#include "support/test.h"

static const struct point {
  wlm_operation operation;
  int64_t n, heads;
  wlm_type type;
  wlm_index rowptr;
  int transpose, families;
} points[] = {{WLM_SPMM, 40, 8, WLM_F32, WLM_I64, 1, 6},   {WLM_SPMM, 6, 3, WLM_F16, WLM_I32, 1, 7},
              {WLM_SPMM, 96, 3, WLM_F32, WLM_I32, 0, 5},   {WLM_SPMM, 30, 2, WLM_BF16, WLM_I32, 0, 5},
              {WLM_SDDMM, 128, 8, WLM_F32, WLM_I32, 0, 2}, {WLM_SDDMM, 66, 2, WLM_F64, WLM_I64, 0, 2}};

TEST(every_family) {
  OWN(wlmi_device, device, simt_device_open(&device));
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  simt_device_seed(device, 3);
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    wlm_problem problem = PROBLEM(.operation = points[i].operation, .n = points[i].n, .heads = points[i].heads,
                                  .transpose = points[i].transpose, .dense_type = points[i].type);
    wlm_csr csr = CSR(.value_type = points[i].type, .rowptr_type = points[i].rowptr, .values = &csr);
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    assert_true(kernel_check_families(device, generator, &spec, 1, 3) >= points[i].families);
  }
}
