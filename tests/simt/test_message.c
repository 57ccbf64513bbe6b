/* Messages with every family: operands of each place and width, results of each kind, heads that fit a group of lanes,
 * no vector, or no group. */
#include "runtime/devices.h"
#include "simt/shim/simt_device.h"
#include "support/kernel_check.h"
#include "support/test.h"

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
    {"l:row:heads;r:column:heads;score=l+r;softmax=kept*b", 64, 8, WLM_F32, WLM_F32, 0, 0, 0, WLM_I32, WLM_I32,
     WLM_SAMPLE_NONE, 0, NULL}, /* dropout of weights */
    {"t:edge_sum=x*b;sum=kept*t*b;edge_sum=kept*x", 12, 3, WLM_F64, WLM_F64, 0, 1, 0, WLM_I64, WLM_I64, WLM_SAMPLE_NONE,
     0, NULL},
    {"sum=kept*b", 20, 1, WLM_F16, WLM_F16, 0, 0, 0, WLM_I32, WLM_I64, WLM_SAMPLE_FASTRAND, 0, NULL},
    {"score=a", 16, 4, WLM_F64, WLM_F64, 1, 0, 0, WLM_I32, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"sum=a", 12, 1, WLM_F64, WLM_F64, 1, 0, 0, WLM_I64, WLM_I64, WLM_SAMPLE_NONE, 0, NULL},
    {"mean=relu(b+e);sum=x*b*a", 36, 3, WLM_F32, WLM_F32, 1, 0, 0, WLM_I32, WLM_I32, WLM_SAMPLE_FASTRAND, 0, NULL},
    {"max=b;min=b+x", 16, 1, WLM_F16, WLM_F16, 0, 0, 1, WLM_I64, WLM_I64, WLM_SAMPLE_FASTRAND_COPRIME, 0, NULL},
};

static void check_points(wlmi_device *device, int families) {
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    const struct point *p = &points[i];
    wlm_problem problem =
        PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = p->text, .n = p->n, .heads = p->heads,
                .dense_type = p->type, .transpose = p->transpose, .want_argmax = p->argmax, .epilogue.bias = p->bias,
                .epilogue.activation = p->activation, .sampling.sample = p->sample,
                .sampling.width = p->sample == WLM_SAMPLE_NONE ? 0 : 16);
    wlm_csr csr = CSR(.rowptr_type = p->rowptr, .colind_type = p->colind, .value_type = p->values,
                      .values = p->has_values ? &csr : NULL);
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    assert_int_equal(kernel_check_families(device, generator, &spec, 2, 3),
                     p->sample == WLM_SAMPLE_NONE ? families : 1);
  }
}

/* Features of products beside each other: each kind of result sampled or not, transposed or not; types, heads, indices,
 * strategies of sampling, norms, positions, epilogues and `deterministic` take turns. */
static void check_features(wlmi_device *device, int families) {
  static const struct {
    const char *text;
    int of_rows, is_linear, has_extremes; /* all of rows, no sums over heads; all of a sum; some have positions */
  } texts[] = {
      {"sum=relu(b+e)*a", 1, 1, 0},
      {"mean=x*b;max=b*a", 1, 0, 1},
      {"sum=b*a;edge=x*b", 0, 1, 0},
      {"max=b;prod=b;edge_sum=x*b*a", 0, 0, 1},
      {"edge=b+e;edge_sum=x*k", 0, 1, 0},
      {"d:row;w:row:wins;sum=d*w*k;edge_sum=d*w", 0, 0, 0},
      {"x:row:1;sum=x*b*a*degree", 1, 1, 0},
      {"score=a;softmax=b;max=x*b", 1, 0, 1},
      {"t:edge_sum=x*b;score=t/8;softmax=b*t", 0, 0, 0},
      {"t:edge_sum=x*b;score=t/8;softmax=b*t;edge_sum=t", 0, 0, 0},
  };
  static const wlm_type types[] = {WLM_F32, WLM_F16, WLM_F64, WLM_BF16};
  static const wlm_sample samples[] = {WLM_SAMPLE_BUCKET, WLM_SAMPLE_FASTRAND, WLM_SAMPLE_FASTRAND_COPRIME};
  static const wlm_sample_norm norms[] = {WLM_NORM_NONE, WLM_NORM_UNBIASED, WLM_NORM_KEPT};
  int turn = 0;
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int is_sampled = 0; is_sampled < 2; is_sampled++)
      for (int transpose = 0; transpose < 2; transpose++, turn++) {
        wlm_problem problem =
            PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = texts[i].text, .n = turn % 5 ? 12 : 9,
                    .heads = turn % 3 ? 1 : 3, .dense_type = types[turn / 2 % 4], .transpose = transpose,
                    .want_argmax = texts[i].has_extremes && turn % 3);
        problem.argmax_type = problem.dense_type == WLM_F32 ? WLM_I64 : WLM_I32;
        problem.policy.deterministic = turn % 4 == 1;
        problem.epilogue.bias = texts[i].of_rows && turn % 3 == 1;
        problem.epilogue.activation = texts[i].of_rows && turn % 3 > 0 ? "relu" : NULL;
        if (is_sampled) problem.sampling.sample = samples[turn % 3];
        problem.sampling.width = is_sampled ? 8 + turn % 7 : 0;
        problem.sampling.norm = is_sampled && texts[i].is_linear ? norms[turn / 2 % 3] : WLM_NORM_NONE;
        wlm_csr csr = CSR(.rowptr_type = turn / 2 % 3 ? WLM_I32 : WLM_I64, .colind_type = turn % 7 ? WLM_I32 : WLM_I64,
                          .value_type = turn % 2 && problem.dense_type != WLM_F64 ? WLM_F32 : problem.dense_type,
                          .values = turn % 5 ? &csr : NULL);
        GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
        const int walks_samples = is_sampled && texts[i].of_rows && !transpose;
        const int found = kernel_check_families(device, generator, &spec, 1, 3);
        if (found != (walks_samples ? 1 : families))
          fail_msg("%s, turn %d: %d families serve it", texts[i].text, turn, found);
      }
}

TEST(every_family_of_cuda) {
  OWN(wlmi_device, device, simt_device_open(&device));
  simt_device_seed(device, 3);
  check_points(device, 3);
  check_features(device, 3);
}

TEST(every_family_of_the_host) {
  OWN(wlmi_device, device, wlmi_host_device_open(&device));
  check_points(device, 2);
  check_features(device, 2);
}
