/* Finding NVRTC at run time, and handling its results. Needs no GPU. */
#include <pthread.h>

#include "support/emit_fixture.h"
#include "support/test.h"

#include "exported/tables.h"
#include "runtime/cuda/nvrtc.h"

static const char variant[] = "row_crc/cf=1,rows=4";

static void make_spec(wlm_index rowptr_type, wlmi_spec *spec) {
  wlm_problem problem = PROBLEM(.n = 32);
  wlm_csr csr = CSR(.rowptr_type = rowptr_type, .values = &csr);
  assert_int_equal(wlmi_spec_make(&problem, &csr, spec), WLM_OK);
}

static void emit(int arch, wlmi_program *program) {
  wlmi_limits limits = {
      .target = WLMI_TARGET_CUDA, .arch = arch, .threads_per_block = 1024, .shared_bytes = 99 << 10, .processors = 100};
  wlmi_spec spec;
  make_spec(WLM_I32, &spec);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  assert_int_equal(wlmi_generator_emit(generator, variant, &spec, &limits, program), WLM_OK);
}

TEST(the_version_is_supported) {
  int major = 0, minor = -1;
  test_needs_nvrtc();
  assert_int_equal(wlmi_nvrtc_version(&major, &minor), WLM_OK);
  assert_in_range(major, 12, 99);
  assert_in_range(minor, 0, 99);
}

TEST(compiles_for_each_architecture) {
  static const int architectures[] = {80, 90, 100};
  test_needs_nvrtc();
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    HELD(wlmi_program) program;
    WLM_FREED void *cubin = NULL;
    size_t size;
    HELD(wlmi_text) log = {0};
    char target[32];
    emit(architectures[i], &program);
    wlm_status status = wlmi_nvrtc_compile(program.source, program.variant, architectures[i], 0, &cubin, &size, &log);
    if (status != WLM_OK) fail_msg("sm_%d: %s", architectures[i], wlm_error_detail());
    assert_true(size > 64);
    assert_memory_equal(cubin, "\177ELF", 4);
    snprintf(target, sizeof target, "'sm_%d'", architectures[i]);
    assert_non_null(strstr(log.data, target));
    assert_non_null(strstr(log.data, "registers"));
    assert_non_null(strstr(log.data, "0 bytes spill stores"));
  }
}

TEST(an_unknown_architecture_is_an_error) {
  void *cubin = &cubin;
  size_t size;
  test_needs_nvrtc();
  assert_int_equal(wlmi_nvrtc_compile("", "empty", 11, 0, &cubin, &size, NULL), WLM_ERR_NO_COMPILER);
  assert_null(cubin);
  assert_non_null(strstr(wlm_error_detail(), "sm_11"));
}

/* NVRTC compiles PTX for the newest architecture that it lists and the GPU can run. */
TEST(newer_gpu_gets_ptx_of_the_newest_architecture) {
  HELD(wlmi_program) program;
  void *ptx;
  char target[32];
  test_needs_nvrtc();
  const int newest = wlmi_nvrtc_arch(1000);
  assert_in_range(newest, 90, 999);
  assert_int_equal(wlmi_nvrtc_arch(newest), newest);
  assert_int_equal(wlmi_nvrtc_arch(91), 90);
  assert_int_equal(wlmi_nvrtc_arch(11), 11);
  emit(newest, &program);
  GET(size_t, size, wlmi_nvrtc_compile(program.source, program.variant, newest, 1, &ptx, &size, NULL));
  assert_int_equal(strlen(ptx) + 1, size);
  snprintf(target, sizeof target, "\n.target sm_%d\n", newest);
  assert_non_null(strstr(ptx, target));
  wlmi_free(ptx);
}

/* Machine code and PTX of one compilation are those of two. */
TEST(machine_code_and_its_ptx) {
  wlmi_nvrtc_code both[2], alone;
  HELD(wlmi_program) program;
  void *ptx;
  test_needs_nvrtc();
  emit(90, &program);
  assert_int_equal(wlmi_nvrtc_both(program.source, program.variant, 90, &both[0], &both[1], NULL), WLM_OK);
  GET(size_t, size, wlmi_nvrtc_compile(program.source, program.variant, 90, 1, &ptx, &size, NULL));
  assert_int_equal(both[1].size, size);
  assert_string_equal(both[1].bytes, ptx);
  assert_int_equal(wlmi_nvrtc_compile(program.source, program.variant, 90, 0, &alone.bytes, &alone.size, NULL), WLM_OK);
  assert_int_equal(both[0].size, alone.size);
  assert_memory_equal(both[0].bytes, alone.bytes, alone.size);
  wlmi_free(both[0].bytes), wlmi_free(both[1].bytes), wlmi_free(alone.bytes), wlmi_free(ptx);
  assert_int_equal(wlmi_nvrtc_both("no C", "no C", 90, &both[0], &both[1], NULL), WLM_ERR_COMPILE);
  assert_null(both[0].bytes);
  assert_null(both[1].bytes);
}

/* An error in the template that only the compiler notices is reported with the template's line. */
TEST(error_names_the_templates_line) {
  static const char place[] = "wlm_begin(args, row)";
  HELD(wlmi_program) program;
  void *cubin;
  size_t size;
  test_needs_nvrtc();
  emit(90, &program);
  char *line = strstr(program.source, "#line 1 \"row_crc/kernel.cu.in\"");
  assert_non_null(line);
  char *call = strstr(line, place);
  assert_non_null(call);
  memcpy(call, "wlm_bogus", strlen("wlm_begin"));
  assert_int_equal(wlmi_nvrtc_compile(program.source, program.variant, 90, 0, &cubin, &size, NULL), WLM_ERR_COMPILE);
  assert_null(cubin);
  assert_non_null(strstr(wlm_error_detail(), "row_crc/kernel.cu.in("));
  assert_non_null(strstr(wlm_error_detail(), "wlm_bogus"));
}

/* ---- fresh patterns ---------------------------------------------------------------------------------------- */

/* Checks the body of one kernel, up to the begin of the next one. */
static void waits_before_it_loads(const char *ptx, const char *kernel, const char *name) {
  char entry[128];
  snprintf(entry, sizeof entry, ".entry %s(", kernel);
  const char *body = strstr(ptx, entry);
  assert_non_null(body);
  const char *wait = strstr(body, "griddepcontrol.wait"), *load = strstr(body, "ld.global");
  const char *end = strstr(body, "\n}\n");
  assert_non_null(end);
  if (!wait || wait > end || (load && load < wait)) fail_msg("%s: %s loads before it waits", name, kernel);
}

/* Checks one unprepared candidate of each family whose first pass may start while earlier work runs. */
static int check_families(wlmi_generator *generator, const wlm_problem *problem) {
  const wlmi_limits *limits = &emit_cuda;
  char family[64] = "";
  int checked = 0;
  wlm_csr csr = CSR(.values = &csr);
  GET(wlmi_spec, spec, wlmi_spec_make(problem, &csr, &spec));
  OWN(wlmi_candidates, list, wlmi_generator_describe(generator, &spec, limits, &list));
  for (int64_t i = 0; i < list->count; i++) {
    const char *name = list->candidates[i].variant;
    const size_t length = strcspn(name, "/");
    void *ptx;
    size_t size;
    if (!strncmp(name, family, length) && !family[length]) continue;
    HOLD(wlmi_program, program, wlmi_generator_emit(generator, name, &spec, limits, &program));
    const wlmi_pass *first = wlmi_program_first_execute(&program);
    if (first == program.passes) snprintf(family, sizeof family, "%.*s", (int)length, name);
    if (first == program.passes && first->dependent) {
      assert_int_equal(wlmi_nvrtc_compile(program.source, name, limits->arch, 1, &ptx, &size, NULL), WLM_OK);
      waits_before_it_loads(ptx, first->kernel, name);
      wlmi_free(ptx);
      checked++;
    }
  }
  return checked;
}

/* The kernel before may still write the pattern, so the first pass must wait before its first load. */
TEST(kernels_wait_for_fresh_patterns) {
  wlm_problem problems[6];
  static const int least[] = {3, 4, 1, 4, 2, 1};
  test_needs_nvrtc();
  for (int i = 0; i < 6; i++) {
    problems[i] = (wlm_problem)WLM_PROBLEM_INIT;
    problems[i].n = 64;
  }
  problems[1].n = 4;
  problems[2].sampling.sample = WLM_SAMPLE_BUCKET;
  problems[2].sampling.width = 16;
  problems[3].transpose = 1;
  problems[4].operation = WLM_SDDMM;
  problems[5] = problems[2];
  problems[5].transpose = 1;
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int i = 0; i < 6; i++) assert_true(check_families(generator, &problems[i]) >= least[i]);
}

/* ------------------------------------------------------------------------------------------------------------ */

static void *compile_again(void *user) {
  const wlmi_program *program = user;
  for (int i = 0; i < 3; i++) {
    WLM_FREED void *cubin = NULL;
    size_t size;
    if (wlmi_nvrtc_compile(program->source, program->variant, 90, 0, &cubin, &size, NULL) != WLM_OK) return NULL;
  }
  return user;
}

TEST(several_threads_compile_at_once) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  HELD(wlmi_program) program;
  test_needs_nvrtc();
  emit(90, &program);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_again, &program), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, &program);
  }
}

/* The library contains the built-in kernels that a machine without NVRTC needs. */
TEST(built_in_kernels_exist) {
  const wlmi_limits gpu = {.target = WLMI_TARGET_CUDA, .arch = 90, .processors = 132};
  const wlmi_exported *tables = &wlmi_exported_tables;
  if (tables->target_count < 2) test_missing("nvrtc", "built-in PTX", "the library was built without NVRTC");
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    wlmi_spec spec;
    char entry[128];
    make_spec((wlm_index)type, &spec);
    const wlmi_exported_kernel *found = wlmi_exported_builtin(tables, &gpu, &spec);
    assert_non_null(found);
    const wlmi_program program = wlmi_exported_program(tables, found, &gpu);
    const char *ptx = tables->images[found->image].data;
    assert_string_equal(program.variant, variant);
    assert_null(program.source);
    assert_int_equal(program.pass_count, 1);
    assert_int_equal(program.passes[0].units_per_block, 4);
    assert_int_equal(program.passes[0].threads, 128);
    assert_int_equal(ptx[tables->images[found->image].size - 1], 0);
    snprintf(entry, sizeof entry, ".visible .entry %s(", program.passes[0].kernel);
    assert_non_null(strstr(ptx, entry));
    assert_non_null(strstr(ptx, "\n.version 8.0\n"));
  }
}

static void compile_helper(const wlmi_program *program) {
  HELD(wlmi_text) log = {0};
  size_t size;
  WLM_FREED GET(void *, cubin, wlmi_nvrtc_compile(program->source, program->variant, 90, 0, &cubin, &size, &log));
  for (const char *at = log.data; (at = strstr(at, " bytes stack frame")); at++) assert_memory_equal(at - 2, " 0", 2);
}

/* The kernels of wlm_csr_from_bsr for all types of indices, and those that copy column-major arrays: without local
 * memory. */
TEST(helpers_compile) {
  HELD(wlmi_program) program;
  wlmi_spec spec;
  test_needs_nvrtc();
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int types = 0; types < 4; types++) {
    const wlm_index rowptr = (wlm_index)(types % 2), colind = (wlm_index)(types / 2);
    assert_status(WLM_OK, emit_helper(generator, WLMI_HELPER_BLOCKS, rowptr, colind, 0, &program));
    compile_helper(&program);
    wlmi_program_release(&program);
  }
  make_spec(WLM_I32, &spec);
  assert_status(WLM_OK, wlmi_generator_emit_program(generator, WLMI_HELPER_LAYOUT, NULL, &spec, &emit_cuda, &program));
  compile_helper(&program);
}
