/* The operator block of user-defined operators and epilogues, and the families that serve them. */
#include "support/emit_fixture.h"
#include "support/test.h"

static wlmi_spec own_spec(int64_t n, const char *custom, const char *activation, int bias) {
  wlmi_spec plain = emit_spec(n), spec;
  wlm_problem problem = plain.problem;
  wlm_csr csr = CSR(.values = &csr);
  if (custom) problem.reduce = WLM_CUSTOM;
  problem.custom = custom;
  problem.epilogue.activation = activation;
  problem.epilogue.bias = bias;
  if (wlmi_spec_make(&problem, &csr, &spec) != WLM_OK) fail_msg("%s", wlm_error_detail());
  return spec;
}

static const char host_row[] = "host_row/rows=16,tile=16", host_nnz[] = "host_nnz/nonzeros=1024,tile=16";

static char *source_of(const char *variant, const wlmi_limits *limits, const wlmi_spec *spec) {
  wlmi_program program;
  if (wlmi_generator_emit(emit_generator, variant, spec, limits, &program) != WLM_OK)
    fail_msg("%s", wlm_error_detail());
  return program.source; /* wlm_string_free */
}

static void expect_in(const char *custom, const char *activation, int bias, const char *const *texts) {
  const wlmi_spec spec = own_spec(16, custom, activation, bias);
  WLM_FREED char *source = source_of(host_row, &emit_host, &spec);
  for (; *texts; texts++) {
    int absent = **texts == '!';
    if ((strstr(source, *texts + absent) != NULL) == absent)
      fail_msg("%s%s:\n%s", absent ? "there is " : "there is no ", *texts + absent, source);
  }
}

TEST(blocks) {
  expect_in("message=fmaxf(a*b,0);init=0;reduce=acc+x;finish=acc/degree", NULL, 0,
            (const char *[]){"return\n#line 1 \"op:message\"\nfmaxf(a*b,0.f); }\n", "#line 1 \"op:init\"\n0.f; }\n",
                             "#line 1 \"op:reduce\"\nacc+x; }\n",
                             "return degree == 0 ? acc :\n#line 1 \"op:finish\"\nacc/(wlm_acc_t)degree; }\n",
                             "#define fmaxf wlm_fmax\n", "#define WLM_USES_A 1\n#define WLM_USES_B 1\n",
                             "!wlm_combine(", "!op:combine", "!wlm_activation", "!args->bias", NULL});
  expect_in("init=0;reduce=acc+x;combine=reduce", NULL, 0,
            (const char *[]){"wlm_combine(wlm_acc_t acc, wlm_acc_t x) { return\n#line 1 \"op:combine\"\nacc+x; }\n",
                             "return a * b; }\n", "!op:message", "!__CUDA_ARCH__\nfloat", NULL});
  expect_in(
      "init=0;reduce=acc+x;combine=x-acc;message=b", NULL, 0,
      (const char *[]){"#line 1 \"op:combine\"\nx-acc; }\n", "#define WLM_USES_A 0\n#define WLM_USES_B 1\n", NULL});
  expect_in("init=0;reduce=acc+x;message=a", NULL, 0,
            (const char *[]){"#define WLM_USES_A 1\n#define WLM_USES_B 0\n", NULL});
  expect_in(NULL, "pow(abs(x),2)+fabs(x)", 0,
            (const char *[]){"#ifndef __CUDA_ARCH__\nfloat fabsf(float);\nfloat powf(float, float);\n#endif\n", NULL});
  expect_in(NULL, "leaky_relu(x,0.5)", 0,
            (const char *[]){
                "WLM_FN wlm_acc_t wlm_leaky_relu(wlm_acc_t x, wlm_acc_t slope) { return x < 0 ? slope * x : x; }\n",
                "#line 1 \"op:activation\"\nwlm_leaky_relu(x,0.5f); }\n",
                "value = wlm_activation(value); return wlm_narrow(value);", "!wlm_relu", "!args->bias", NULL});
  expect_in(NULL, NULL, 1,
            (const char *[]){"value += wlm_widen(((const wlm_c_t *)args->bias)[column]); return wlm_narrow(value);",
                             "!wlm_activation", NULL});
}

/* Inserting a user's expression does not change the numbers of the lines behind it. */
TEST(lines_keep_their_numbers) {
  const wlmi_spec spec = own_spec(16, "message=b*a;init=0;reduce=acc+x", NULL, 0);
  WLM_FREED char *source = source_of(host_row, &emit_host, &spec);
  int64_t line = 0, in_block = 0, checked = 0;
  for (char *at = strtok(source, "\n"); at; at = strtok(NULL, "\n"), line++) {
    long long number;
    char name[64];
    if (sscanf(at, "#line %lld \"%63[^\"]\"", &number, name) != 2) continue;
    if (strcmp(name, "operator block")) continue;
    if (number == 1) in_block = line;
    assert_int_equal(number, line - in_block + 1);
    checked += number != 1;
  }
  assert_int_equal(checked, 3);
}

/* A user-defined sum of products gives the same kernel as the built-in one, except for #line directives. */
TEST(user_sum_equals_the_built_in_one) {
  const char *const variants[] = {"merge_path/items=256,lanes=8,vector=4,batch=4,prepared=0",
                                  "row_vec/lanes=8,vector=4,batch=4"};
  const wlmi_spec built_in = emit_spec(32), own = own_spec(32, "init=0;reduce=acc+x;combine=reduce", NULL, 0);
  for (int i = 0; i < 2; i++) {
    WLM_FREED char *expected = source_of(variants[i], &emit_cuda, &built_in),
                   *got = source_of(variants[i], &emit_cuda, &own);
    const char *const kernel = strstr(expected, "/kernel.cu.in"), *own_kernel = strstr(got, "/kernel.cu.in");
    assert_non_null(kernel);
    assert_string_equal(kernel, own_kernel);
  }
}

static void expect_refusal(wlmi_generator *generator, const char *variant, const wlmi_limits *limits,
                           const wlmi_spec *spec, const char *says) {
  HELD(wlmi_text) reason = {0};
  assert_status(WLM_OK, wlmi_generator_refusal(generator, variant, spec, limits, &reason));
  if (says && !reason.size) fail_msg("%s is a candidate", variant);
  if (says) assert_contains(reason.data, says);
  if (!says && reason.size) fail_msg("%s: %s", variant, reason.data);
}

TEST(rows_are_not_split_without_combine) {
  const wlmi_spec whole = own_spec(16, "init=0;reduce=acc+x", NULL, 0),
                  parts = own_spec(16, "init=0;reduce=acc+x;combine=reduce", NULL, 0);
  expect_refusal(emit_generator, host_row, &emit_host, &whole, NULL);
  expect_refusal(emit_generator, host_nnz, &emit_host, &whole, "splits rows, and the operator has no combine");
  expect_refusal(emit_generator, host_nnz, &emit_host, &parts, NULL);
  const wlmi_candidate_list *names;
  const wlmi_limits *const targets[] = {&emit_cuda, &emit_host};
  for (int i = 0; i < 2; i++) {
    assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &whole, targets[i], &names));
    assert_true(names->count > 1);
    for (int64_t k = 0; k < names->count; k++) {
      HOLD(wlmi_program, program,
           wlmi_generator_emit(emit_generator, names->candidates[k].variant, &whole, targets[i], &program));
      assert_string_equal(program.split, "none");
      if (strstr(program.source, "wlm_combine"))
        fail_msg("%s does not split rows and combines", names->candidates[k].variant);
    }
    wlmi_candidates_drop(names);
  }
}

/* A family with atomic adds needs an atomic form of the reduction; one that reorders edges needs order=any. */
TEST(families_that_add_or_reorder) {
  static const char kernel[] = "WLM_KERNEL(wlm_@{name}) { (void)unit_blocks; }\n";
  static const char family[] =
      "return { target = 'host', summary = 'none', split = '%s', keeps_order = %s, parameters = { { 'name', { 'k' } } "
      "},\n"
      "  passes = function() return { { kernel = 'wlm_k', units = 'rows' } } end }\n";
  test_folder own_folder;
  char text[512];
  folder_make(&own_folder);
  const char *const names[] = {"adds", "sorts"};
  for (int i = 0; i < 2; i++) {
    snprintf(text, sizeof text, family, i ? "none" : "atomic", i ? "false" : "true");
    emit_write(&own_folder, names[i], "family.lua", text);
    emit_write(&own_folder, names[i], "kernel.c.in", kernel);
  }
  GET(wlmi_generator *, generator, wlmi_generator_create(own_folder.path, &generator));
  const wlmi_spec sum = emit_spec(16), own = own_spec(16, "init=0;reduce=acc+x;combine=reduce", NULL, 0),
                  active = own_spec(16, NULL, "relu", 0),
                  any_order = own_spec(16, "init=0;reduce=acc+x;order=any", NULL, 0);
  wlmi_spec mean = emit_spec(16), max = emit_spec(16);
  mean.problem.reduce = WLM_MEAN;
  max.problem.reduce = WLM_MAX;
  expect_refusal(generator, "adds/name=k", &emit_host, &sum, NULL);
  expect_refusal(generator, "adds/name=k", &emit_host, &own, "needs an atomic form");
  expect_refusal(generator, "adds/name=k", &emit_host, &active, NULL);
  expect_refusal(generator, "adds/name=k", &emit_host, &mean, "needs an atomic form");
  expect_refusal(generator, "adds/name=k", &emit_host, &max, "needs an atomic form");
  expect_refusal(generator, "sorts/name=k", &emit_host, &sum, NULL);
  expect_refusal(generator, "sorts/name=k", &emit_host, &max, NULL);
  expect_refusal(generator, "sorts/name=k", &emit_host, &own, "keeps their order");
  expect_refusal(generator, "sorts/name=k", &emit_host, &any_order, NULL);
  wlmi_generator_destroy(generator);
  folder_remove(&own_folder);
}

GROUP(emit_begin, emit_end)
