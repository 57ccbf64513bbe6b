/* Variant names, refusals and candidates, and the generator under several threads. */
#include <pthread.h>

#include "support/emit_fixture.h"
#include "support/test.h"

TEST(test_names_become_canonical) {
  static const char *const spellings[] = {"row_crc/cf=2,rows=4", "row_crc/rows=4,cf=2"};
  const wlmi_spec spec = emit_spec(64);
  for (int i = 0; i < 2; i++) {
    HOLD(wlmi_program, program, wlmi_generator_emit(emit_generator, spellings[i], &spec, &emit_cuda, &program));
    assert_string_equal(program.variant, "row_crc/cf=2,rows=4");
    assert_string_equal(program.split, "none");
    assert_int_equal(program.pass_count, 1);
    assert_string_equal(program.passes[0].kernel, "wlm_row_crc");
    assert_int_equal(program.passes[0].units, WLMI_UNITS_ROWS);
    assert_int_equal(program.passes[0].units_per_block, 4);
    assert_int_equal(program.passes[0].columns_per_block, 64);
    assert_int_equal(program.passes[0].threads, 128);
    assert_true(program.deterministic);
  }
}

TEST(test_invalid_names) {
  static const struct {
    const char *variant, *message, *also;
  } cases[] = {
      {"row_crd/cf=2", "no family 'row_crd'", "row_naive"},
      {"", "no family ''", "host_row"},
      {"row_crc/cf=3,rows=4", "parameter 'cf' must be one of: 1, 2, 4, 8", "row_crc/cf=3,rows=4"},
      {"row_crc/cf=2", "parameter 'rows' must be one of: 4, 8", "row_crc/cf=2"},
      {"row_crc/cf=2,rows=4,depth=3", "family 'row_crc' has no parameter 'depth'", "depth"},
      {"row_crc/cf=2,cf=2,rows=4", "'cf' stands twice", "row_crc"},
      {"row_crc/cf,rows=4", "'cf' is not NAME=VALUE", "row_crc"},
      {"row_crc/cf=2 ,rows=4", "'cf=2 ' is not NAME=VALUE", "row_crc"},
  };
  const wlmi_spec spec = emit_spec(64);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_text reason = {0};
    wlmi_program program;
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlmi_generator_refusal(emit_generator, cases[i].variant, &spec, &emit_cuda, &reason));
    assert_contains(wlm_error_detail(), cases[i].message);
    assert_contains(wlm_error_detail(), cases[i].also);
    assert_int_equal(reason.size, 0);
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlmi_generator_emit(emit_generator, cases[i].variant, &spec, &emit_cuda, &program));
    assert_null(program.source);
  }
}

TEST(test_refusals_give_reasons) {
  static const struct {
    const char *variant;
    int64_t n;
    wlm_sample sample;
    int64_t width;
    int host;
    const char *reason; /* NULL if it is a candidate */
  } cases[] = {
      {"row_crc/cf=1,rows=4", 32, WLM_SAMPLE_NONE, 0, 0, NULL},
      {"row_crc/cf=2,rows=4", 32, WLM_SAMPLE_NONE, 0, 0, "merges warps"},
      {"row_crc/cf=2,rows=4", 33, WLM_SAMPLE_NONE, 0, 0, NULL},
      {"row_crc/cf=1,rows=4", 32, WLM_SAMPLE_NONE, 0, 1, "is for the cuda device"},
      {"host_row/rows=16,tile=32", 32, WLM_SAMPLE_NONE, 0, 0, "is for the host device"},
      {"row_crc/cf=1,rows=4", 32, WLM_SAMPLE_BUCKET, 64, 0, "does not sample"},
      {"row_sample/threads=32,rows=4,vector=1,batch=4", 32, WLM_SAMPLE_NONE, 0, 0, "is for sampled problems"},
      {"row_sample/threads=32,rows=4,vector=1,batch=4", 32, WLM_SAMPLE_BUCKET, 2304, 0, NULL},
      {"row_sample/threads=128,rows=16,vector=1,batch=4", 32, WLM_SAMPLE_BUCKET, 8, 0, "more than 512 threads"},
      {"row_sample/threads=32,rows=16,vector=1,batch=4", 32, WLM_SAMPLE_BUCKET, 2304, 0,
       "bytes of shared memory, the device has"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) reason = {0};
    wlmi_spec spec = emit_spec(cases[i].n);
    spec.problem.sampling.sample = cases[i].sample;
    spec.problem.sampling.width = cases[i].width;
    const wlmi_limits *limits = cases[i].host ? &emit_host : &emit_cuda;
    assert_status(WLM_OK, wlmi_generator_refusal(emit_generator, cases[i].variant, &spec, limits, &reason));
    if (!cases[i].reason) assert_int_equal(reason.size, 0);
    if (cases[i].reason) {
      wlmi_program program;
      assert_non_null(reason.data);
      assert_contains(reason.data, cases[i].reason);
      assert_status(WLM_ERR_INVALID_ARGUMENT,
                    wlmi_generator_emit(emit_generator, cases[i].variant, &spec, limits, &program));
      assert_contains(wlm_error_detail(), cases[i].reason);
    }
  }
}

TEST(test_a_small_device_has_fewer_candidates) {
  wlmi_limits small = emit_cuda;
  small.threads_per_block = 128;
  const wlmi_spec spec = emit_spec(64);
  HELD(wlmi_text) reason = {0};
  assert_status(WLM_OK, wlmi_generator_refusal(emit_generator, "row_crc/cf=1,rows=8", &spec, &small, &reason));
  assert_string_equal(reason.data, "needs 256 threads a block, the device has 128");
}

static int64_t count_prefix(const wlmi_candidate_list *names, const char *prefix) {
  int64_t count = 0;
  for (int64_t i = 0; i < names->count; i++) count += !strncmp(names->candidates[i].variant, prefix, strlen(prefix));
  return count;
}

TEST(test_candidates) {
  static const struct { int64_t n, crc, naive; } cases[] = {{16, 2, 8}, {32, 2, 8}, {33, 8, 8}, {128, 8, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = emit_spec(cases[i].n);
    OWN(wlmi_candidates, names, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &names));
    assert_int_equal(count_prefix(names, "row_crc/"), cases[i].crc);
    assert_int_equal(count_prefix(names, "row_naive/"), cases[i].naive);
    assert_int_equal(count_prefix(names, "host_"), 0);
    assert_int_equal(count_prefix(names, "row_sample/"), 0);
    for (int64_t k = 0; k < names->count; k++) { /* every listed name is accepted, and listed once */
      HELD(wlmi_text) reason = {0};
      assert_status(WLM_OK,
                    wlmi_generator_refusal(emit_generator, names->candidates[k].variant, &spec, &emit_cuda, &reason));
      assert_int_equal(reason.size, 0);
      for (int64_t j = 0; j < k; j++)
        assert_string_not_equal(names->candidates[j].variant, names->candidates[k].variant);
    }
  }
}

/* In 16 bits half of the widest vector is valid, too, where a row of C then occupies a group of lanes. */
TEST(test_half_of_the_widest_vector) {
  static const struct {
    const char *variant;
    int64_t n;
    wlm_type type;
    int valid;
  } cases[] = {{"row_vec/lanes=16,vector=4,batch=4", 64, WLM_F16, 1},
               {"row_vec/lanes=16,vector=4,batch=4", 64, WLM_BF16, 1},
               {"row_vec/lanes=16,vector=4,batch=4", 64, WLM_F32, 1},
               {"row_vec/lanes=16,vector=4,batch=4", 128, WLM_F16, 0},
               {"row_vec/lanes=8,vector=4,batch=4", 64, WLM_F16, 0},
               {"row_vec/lanes=16,vector=2,batch=4", 64, WLM_F16, 0},
               {"row_vec/lanes=16,vector=2,batch=4", 32, WLM_F32, 0},
               {"row_vec/lanes=8,vector=8,batch=4", 64, WLM_F16, 1},
               {"row_sorted/threads=128,lanes=4,vector=4,batch=4,share=16", 16, WLM_F16, 1},
               {"merge_path/items=256,lanes=16,vector=4,batch=4,prepared=0", 64, WLM_F16, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_spec spec = emit_spec(cases[i].n);
    HELD(wlmi_text) reason = {0};
    spec.problem.dense_type = spec.value_type = cases[i].type;
    assert_status(WLM_OK, wlmi_generator_refusal(emit_generator, cases[i].variant, &spec, &emit_cuda, &reason));
    if ((reason.size == 0) != cases[i].valid) fail_msg("case %zu: %s", i, reason.data ? reason.data : "valid");
  }
}

/* With N = 0 a product launches nothing, but its plan still needs candidates. */
TEST(test_no_columns) {
  for (int i = 0; i < 8; i++) {
    wlmi_spec spec = emit_spec(0);
    spec.problem.operation = i & 2 ? WLM_SDDMM : WLM_SPMM;
    if (i & 4) spec.problem.sampling = (wlm_sampling){WLM_SAMPLE_BUCKET, WLM_NORM_KEPT, 16};
    const wlmi_limits *limits = i & 1 ? &emit_host : &emit_cuda;
    OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, limits, &list));
    assert_true(list->count > 0);
    for (int64_t k = 0; k < list->count; k++) {
      HOLD(wlmi_program, program,
           wlmi_generator_emit(emit_generator, list->candidates[k].variant, &spec, limits, &program));
    }
  }
}

/* The generator keeps the list of a spec, whatever `expected_calls` is. A caller's list stays valid after the
 * generator has dropped it. */
TEST(test_candidates_are_kept) {
  enum { MANY = 100 };
  const wlmi_candidate_list *lists[MANY], *again;
  wlmi_spec spec = emit_spec(32);
  assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &lists[0]));
  spec.problem.policy.expected_calls = 1000;
  assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &again));
  assert_ptr_equal(again, lists[0]);
  wlmi_candidates_drop(again);
  assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &spec, &emit_smallest, &again));
  assert_ptr_not_equal(again, lists[0]);
  wlmi_candidates_drop(again);
  for (int i = 1; i < MANY; i++) {
    spec = emit_spec(8 * i);
    assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &spec, &emit_host, &lists[i]));
    for (int64_t k = 0; k < lists[i]->count; k++) {
      const wlmi_candidate *c = &lists[i]->candidates[k];
      assert_ptr_equal(wlmi_candidate_find(lists[i], &c->value), c);
      assert_ptr_equal(wlmi_candidate_named(lists[i], c->variant), c);
    }
  }
  for (int i = 0; i < MANY; i++) {
    assert_true(lists[i]->count > 0);
    assert_null(wlmi_candidate_named(lists[i], i ? "row_crc/cf=1,rows=4" : "host_row/rows=16,tile=16"));
    wlmi_candidates_drop(lists[i]);
  }
}

/* A family that samples the rows of A^T would use other edges than the ones that the rows of A keep, so only these
 * families serve. */
TEST(test_backward_of_a_sample) {
  static const struct {
    int sddmm, deterministic, host, families;
    const char *names[2];
  } cases[] = {{0, 0, 0, 2, {"row_kept/", "scatter/"}},
               {0, 1, 0, 1, {"row_kept/"}},
               {0, 0, 1, 1, {"host_row/"}},
               {1, 0, 0, 1, {"sddmm_row/"}},
               {1, 0, 1, 1, {"sddmm_host/"}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_spec spec = emit_spec(64);
    int64_t found = 0;
    spec.problem.operation = cases[i].sddmm ? WLM_SDDMM : WLM_SPMM;
    spec.problem.transpose = !cases[i].sddmm;
    spec.problem.policy.deterministic = cases[i].deterministic;
    spec.problem.sampling = (wlm_sampling){WLM_SAMPLE_FASTRAND, WLM_NORM_KEPT, 32};
    OWN(wlmi_candidates, names,
        wlmi_generator_describe(emit_generator, &spec, cases[i].host ? &emit_host : &emit_cuda, &names));
    for (int k = 0; k < cases[i].families; k++) {
      const int64_t count = count_prefix(names, cases[i].names[k]);
      assert_true(count > 0);
      found += count;
    }
    assert_int_equal(found, names->count);
  }
}

/* A family that splits rows serves every built-in reduction. */
TEST(test_operators) {
  wlmi_spec spec = emit_spec(128);
  for (int reduce = WLM_SUM; reduce < WLM_CUSTOM; reduce++) {
    HELD(wlmi_text) reason = {0};
    spec.problem.reduce = (wlm_reduce)reduce;
    assert_status(
        WLM_OK, wlmi_generator_refusal(emit_generator, "host_nnz/nonzeros=1024,tile=128", &spec, &emit_host, &reason));
    assert_int_equal(reason.size, 0);
  }
}

TEST(test_list) {
  HELD(wlmi_text) text = {0};
  assert_status(WLM_OK, wlmi_generator_list(emit_generator, &text));
  assert_contains(text.data, "row_crc (cuda; splits a row: none; 8 variants)", "    cf = 1, 2, 4, 8\n",
                  "host_nnz (host; splits a row: carry;");
}

static void *emit_many(void *user) {
  const char *expected = user;
  const wlmi_spec spec = emit_spec(128);
  for (int i = 0; i < 40; i++) {
    wlmi_program program;
    if (wlmi_generator_emit(emit_generator, "row_crc/cf=4,rows=8", &spec, &emit_cuda, &program) != WLM_OK) return user;
    int same = !strcmp(program.source, expected);
    wlmi_program_release(&program);
    if (!same || wlmi_generator_emit(emit_generator, "row_crc/cf=5", &spec, &emit_cuda, &program) == WLM_OK)
      return user;
    if (!strstr(wlm_error_detail(), "'cf' must be one of")) return user;
  }
  return NULL;
}

TEST(test_several_threads) {
  pthread_t threads[4];
  const wlmi_spec spec = emit_spec(128);
  HOLD(wlmi_program, program, wlmi_generator_emit(emit_generator, "row_crc/cf=4,rows=8", &spec, &emit_cuda, &program));
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, emit_many, program.source), 0);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

GROUP(emit_begin, emit_end)
