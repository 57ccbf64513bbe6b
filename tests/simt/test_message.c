/* Messages with every family: operands of each place and width, results of each kind, heads that fit a group of lanes,
 * no vector, or no group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/generator.h"
#include "runtime/devices.h"
#include "simt/shim/simt_device.h"
#include "support/asserts.h"
#include "support/kernel_check.h"

static const struct point {
  const char *text;
  int64_t n, heads;
  wlm_type type, values;
  int has_values, transpose, argmax;
  wlm_index rowptr, colind;
  wlm_sample sample;
  int bias;
  const char *activation;
} points[] = {
    {"sum=relu(b+e)", 64, 1, WLM_F32, WLM_F32, 1, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"sum=relu(b+e)", 21, 1, WLM_F16, WLM_F16, 1, 1, 0, WLM_I64, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"mean=sigmoid(x+k)*b;edge=x*b", 20, 1, WLM_F32, WLM_F32, 0, 0, 0, WLM_I32, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"x:row:1;k:column:1;s:all:1;sum=(x+k)*a*b*s", 32, 4, WLM_F32, WLM_F32, 1, 1, 0, WLM_I64, WLM_I32, WLM_SAMPLE_NONE,
     0, NULL},
    {"v:all;h:all:heads;sum=a*b*v;edge_sum=x*b*h", 64, 8, WLM_F32, WLM_F32, 1, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE,
     0, NULL},
    {"edge_sum=x*b*degree;edge_sum=e*k", 21, 3, WLM_BF16, WLM_F32, 1, 1, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"edge_sum=x*b+a;sum=y", 256, 1, WLM_F32, WLM_F32, 0, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"mean=b;max=b;min=b*a;prod=1", 36, 1, WLM_F32, WLM_F32, 1, 0, 1, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"max=b;min=e", 16, 2, WLM_F64, WLM_F64, 0, 1, 1, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"d:row;w:row:wins;g:row:heads;sum=d*w;sum=d*g", 24, 2, WLM_F32, WLM_F32, 0, 1, 0, WLM_I32, WLM_I32,
     WLM_SAMPLE_NONE, 0, NULL},
    {"d:row;w:row:wins;edge=d*w/degree", 64, 1, WLM_F16, WLM_F16, 0, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"d0:row;p0:row;z0:row;sum=d0*(z0==0?p0/(a*b):z0==1&&a*b==0?p0:0)*a", 20, 1, WLM_F32, WLM_F32, 1, 1, 0, WLM_I32,
     WLM_I32, WLM_SAMPLE_NONE, 0, NULL}, /* of a product */
    {"sum=b+e;max=b", 36, 1, WLM_F32, WLM_F32, 0, 0, 1, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 1, "relu"},
    {"mean=a*b;prod=1", 21, 3, WLM_BF16, WLM_F32, 1, 1, 0, WLM_I64, WLM_I32, WLM_SAMPLE_NONE, 0, "x/(1+exp(-x))"},
    {"sum=a*b", 20, 1, WLM_F16, WLM_F16, 1, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_FASTRAND, 1, NULL},
    {"l:row:heads;r:column:heads;score=leaky_relu(l+r+a,0.25);softmax=b", 64, 1, WLM_F32, WLM_F32, 1, 0, 0, WLM_I32,
     WLM_I32, WLM_SAMPLE_NONE, 1, NULL}, /* GATConv */
    {"t:edge_sum=x*k;score=t*0.125;softmax=b", 256, 1, WLM_F32, WLM_F32, 0, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0,
     NULL},
    {"t:edge_sum=x*b;u:edge_sum=t*b*0.0625;score=u;softmax=b*t;mean=u", 21, 3, WLM_BF16, WLM_F32, 0, 1, 0, WLM_I64,
     WLM_I32, WLM_SAMPLE_NONE, 0, NULL},
    {"t:edge_sum=b;score=t;softmax=b;max=b", 20, 20, WLM_F32, WLM_F32, 0, 0, 1, WLM_I32, WLM_I32, WLM_SAMPLE_NONE, 0,
     NULL}, /* GENConv: a weight for each column */
    {"score=a", 16, 4, WLM_F64, WLM_F64, 1, 0, 0, WLM_I32, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"sum=a", 12, 1, WLM_F64, WLM_F64, 1, 0, 0, WLM_I64, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"mean=relu(b+e);sum=x*b*a", 36, 3, WLM_F32, WLM_F32, 1, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_FASTRAND, 0, NULL},
    {"max=b;min=b+x", 16, 1, WLM_F16, WLM_F16, 0, 0, 1, WLM_I64, WLM_I64, WLM_SAMPLE_FASTRAND_COPRIME, 0, NULL},
};

static void check_points(wlmi_device *device, int families) {
  wlmi_generator *generator;
  assert_status(WLM_OK, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    const struct point *p = &points[i];
    wlm_problem problem = WLM_PROBLEM_INIT;
    wlm_csr csr = WLM_CSR_INIT;
    wlmi_spec spec;
    problem.operation = WLM_MESSAGE;
    problem.reduce = WLM_CUSTOM;
    problem.custom = p->text;
    problem.n = p->n;
    problem.heads = p->heads;
    problem.dense_type = p->type;
    problem.transpose = p->transpose;
    problem.want_argmax = p->argmax;
    problem.epilogue.bias = p->bias;
    problem.epilogue.activation = p->activation;
    problem.sampling.sample = p->sample;
    problem.sampling.width = p->sample == WLM_SAMPLE_NONE ? 0 : 16;
    csr.rowptr_type = p->rowptr;
    csr.colind_type = p->colind;
    csr.value_type = p->values;
    csr.values = p->has_values ? &csr : NULL;
    assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
    assert_int_equal(kernel_check_families(device, generator, &spec, 2), p->sample == WLM_SAMPLE_NONE ? families : 1);
  }
  wlmi_generator_destroy(generator);
  device->ops->close(device);
}

static void every_family_of_cuda(void **state) {
  wlmi_device *device;
  (void)state;
  assert_status(WLM_OK, simt_device_open(&device));
  simt_device_seed(device, 3);
  check_points(device, 3);
}

static void every_family_of_the_host(void **state) {
  wlmi_device *device;
  (void)state;
  assert_status(WLM_OK, wlmi_host_device_open(&device));
  check_points(device, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_family_of_the_host),
                                     cmocka_unit_test(every_family_of_cuda)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
