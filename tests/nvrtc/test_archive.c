/* What a kernel archive contains: with it and without a compiler, every width of every problem that it is for has a
 * kernel. The archive is built without compiling; the driver is a fake (tests/fake_cuda). */
#include "core/base/memory.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "fake_cuda/fake_process.h"
#include "runtime/archived.h"
#include "runtime/context_state.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/decide.h"
#include "support/command.h"
#include "support/test.h"
#include "support/tsv.h"
#include "tuner/archive_build.h"

static const char *archive_file(void) {
  static char path[320];
  snprintf(path, sizeof path, "%s/kernels.archive", folder.path);
  return path;
}

static void build(void) {
  wlmi_archive_summary summary;
  const wlmi_archive_request request = {.path = archive_file(),
                                        .system_database = WLM_SOURCE_DIR "/share/warploom/system.db",
                                        .archs = {80, 90, 100},
                                        .arch_count = 3,
                                        .compiles_nothing = 1};
  CHECK(wlmi_archive_build(&request, &summary) == WLM_OK);
  for (int i = 0; i < 3; i++) CHECK(summary.kernels[i] > 500 && summary.kernels[i] < 1400 && !summary.compiled[i]);
  CHECK(summary.kernels[2] < summary.kernels[1]); /* PTX */
}

/* Means in f32 alone, compiled for sm_90 and as PTX, most of which comes with the machine code. */
static void build_means(void) {
  wlmi_archive_summary summary;
  const wlmi_archive_request request = {.path = archive_file(),
                                        .system_database = "",
                                        .archs = {90, 100},
                                        .arch_count = 2,
                                        .groups = "mean",
                                        .only_f32 = 1};
  CHECK(wlmi_archive_build(&request, &summary) == WLM_OK);
  CHECK(summary.compiled[0] == summary.kernels[0] && summary.bytes[0] > 1000 * summary.kernels[0]);
  CHECK(summary.compiled[1] < summary.kernels[1] / 2 && summary.bytes[1] > 1000 * summary.kernels[1]);
  CHECK(summary.file_bytes > 0 && summary.file_bytes < (summary.bytes[0] + summary.bytes[1]) / 3);
}

static void unknown_names_are_refused(void) {
  wlmi_archive_summary summary;
  wlmi_archive_request request = {.path = archive_file(), .archs = {80}, .arch_count = 1, .groups = "sum,summe"};
  CHECK(wlmi_archive_build(&request, &summary) == WLM_ERR_INVALID_ARGUMENT);
  DETAIL("'summe' is no group of problems; there are sum, mean, max");
  request.groups = "sum";
  request.archs[0] = 70;
  CHECK(wlmi_archive_build(&request, &summary) == WLM_ERR_INVALID_ARGUMENT);
  DETAIL("sm_70");
}

/* The kernel that is chosen on a matrix, even or skewed, is in the archive, with the text that is emitted to load it.
 */
static void has_kernel(wlm_context *context, const char *key, int64_t n) {
  static const double cvs[] = {0.3, 3};
  for (int i = 0; i < 2; i++) {
    wlm_stats stats = STATS(.rows = 20000, .cols = 20000, .nnz = 200000, .longest = 40, .cv = cvs[i]);
    wlmi_decision d;
    wlmi_spec spec;
    CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
    wlmi_context_select(context, NULL, &stats, WLMI_USE_MEASURED, &spec, &d);
    wlmi_loaded loaded;
    if (d.entries[0].step == WLMI_STEP_BUILTIN ||
        !wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .variant = d.entries[0].variant}) ||
        wlmi_context_load(context, &(wlmi_wanted){.spec = &spec, .variant = d.entries[0].variant}, &loaded) != WLM_OK) {
      fprintf(stderr, "n = %lld %s: %s\n", (long long)n, key, wlm_error_detail());
      _exit(1);
    }
  }
}

/* With a compiler, which makes all others, only kernels in the form for n count. */
static void has_kernel_as_it_is(wlm_context *context, const char *key, int64_t n) {
  const wlmi_candidate_list *list;
  wlmi_spec spec;
  int found = 0;
  CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
  CHECK(wlmi_generator_describe(context->generator, &spec, &context->device->info.limits, &list) == WLM_OK);
  for (int64_t i = 0; i < list->count && !found; i++)
    found = wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .variant = list->candidates[i].value});
  wlmi_candidates_drop(list);
  if (!found) fprintf(stderr, "n = %lld %s\n", (long long)n, key), _exit(1);
}

/* The gradient by argmax has kernels, too. */
static void has_gradient(wlm_context *context, const char *key, int64_t n) {
  wlmi_limits limits = context->device->info.limits;
  HELD(wlmi_program) program;
  WLM_FREED void *image = NULL;
  wlmi_spec spec;
  size_t size;
  limits.any_width = 0;
  CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
  spec = wlmi_spec_gradient(&spec);
  CHECK(wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .helper = WLMI_HELPER_GRADIENT}));
  CHECK(wlmi_generator_emit_program(context->generator, WLMI_HELPER_GRADIENT, NULL, &spec, &limits, &program) ==
        WLM_OK);
  const wlmi_hash source = wlmi_hash_text(program.source);
  CHECK(wlmi_archives_get_source(&context->archives, &context->device->info, source, &image, &size) == WLM_OK);
}

static void check_problems(wlm_context *context, const char *type) {
  static const int64_t columns[] = {1, 2, 3, 7, 8, 12, 16, 20, 40, 47, 64, 100, 130, 256, 602, 1000};
  static const char *const positions[] = {"", ",arg=i16", ",arg=i32", ",arg=i64"}; /* the first is a mean */
  static const char *const rests[] = {"", ",transpose=1", ",operation=sddmm"};
  static const char *const scores[] = {"", ",dropout=1", ",score=gatv2", ",score=dot", ",score=edge"};
  static const char *const of_heads[] = {",operation=sddmm", ",transpose=1"}; /* in f32 for all types */
  char key[WLMI_SPEC_KEY];
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    for (int r = 0; r < 3; r++) {
      snprintf(key, sizeof key, "op=mul.sum,dense=%s,rowptr=i32,colind=i32,values=%s,sample=none%s", type,
               r == 2 ? "none" : type, rests[r]);
      has_kernel(context, key, columns[i]);
    }
    for (int max = 0; max < 4; max++) {
      snprintf(key, sizeof key, "op=copy_b.%s,dense=%s,rowptr=i32,colind=i32,values=none,sample=none%s",
               max ? "max" : "mean", type, positions[max]);
      has_kernel(context, key, columns[i]);
      if (max) has_gradient(context, key, columns[i]);
    }
    for (int heads = 1; heads <= 3; heads += 2) { /* 3 heads of 24 columns among them */
      const int64_t n = heads * (columns[i] == 20 ? 24 : columns[i]);
      for (int s = 0; s < 10; s++) {
        snprintf(key, sizeof key,
                 "op=mul.sum,dense=%s,rowptr=i32,colind=i32,values=%s,sample=none,operation=attention%s%s%s", type,
                 s / 2 == 4 ? "f32" : "none", scores[s / 2], s % 2 ? ",transpose=1" : "", heads > 1 ? ",heads=3" : "");
        has_kernel(context, key, n);
      }
      for (int r = 0; r < 2 && heads > 1; r++) {
        snprintf(key, sizeof key, "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=%s,sample=none%s,heads=3",
                 r ? "f32" : "none", of_heads[r]);
        has_kernel(context, key, n);
      }
    }
  }
}

/* Opens a context of sm_ARCH that has the archive. */
static wlm_context *open_context(int arch, const char *system_database) {
  wlm_context *context;
  wlm_context_options options = CONTEXT_OPTIONS(.device = "cuda", .database = "", .kernel_cache = "",
                                                .system_database = system_database, .kernel_archive = archive_file());
  fake->arch = arch;
  fake->any_code = 1;
  CHECK(wlm_context_create(&options, &context) == WLM_OK && context->archives.count);
  return context;
}

static wlm_context *open_without_compiler(int arch, const char *system_database) {
  setenv("WARPLOOM_NVRTC", "/nowhere", 1);
  wlm_context *context = open_context(arch, system_database);
  CHECK(!*context->device->info.compiler);
  return context;
}

/* The kernel that scatters a matrix that is used once, in the form for n. */
static void has_scattering(wlm_context *context, int64_t n) {
  static const char key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,transpose=1";
  wlm_stats stats = STATS(.rows = 20000, .cols = 20000, .nnz = 200000);
  wlmi_decision d = {0};
  wlmi_spec spec;
  CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
  CHECK(wlmi_context_select(context, NULL, &stats, WLMI_USE_SCATTER, &spec, &d) == WLM_OK && d.entry_count == 1);
  if (!wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .variant = d.entries[0].variant}))
    fprintf(stderr, "n = %lld: %s\n", (long long)n, d.variant), _exit(1);
}

/* Every problem of the models of tests/python/pyg/test_archived_problems.py. */
static void check_models(void) {
  tsv_table table;
  OWNED(wlm_context) *context = open_context(90, WLM_SOURCE_DIR "/share/warploom/system.db");
  CHECK(*context->device->info.compiler);
  for (int64_t n = 16; n <= 128; n *= 2) has_scattering(context, n);
  CHECK(tsv_read(WLM_SOURCE_DIR "/tests/problems_of_models.tsv", &table) && table.rows > 50);
  for (int row = 0; row < table.rows; row++) {
    const char *key = tsv_text(&table, row, "problem");
    (strstr(key, "argmax_gradient") ? has_gradient : has_kernel_as_it_is)(context, key, tsv_int(&table, row, "n"));
  }
  tsv_free(&table);
}

/* Of every architecture that the archive serves: its own code, that of an older minor version, and PTX. */
static void check(void) {
  static const struct {
    int arch;
    const char *type;
  } cases[] = {{90, "f32"}, {86, "bf16"}, {120, "f16"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    OWNED(wlm_context) *context = open_without_compiler(cases[i].arch, WLM_SOURCE_DIR "/share/warploom/system.db");
    check_problems(context, cases[i].type);
  }
}

/* The code of the kernel that is chosen for one mean of 64 columns; wlmi_free. */
static char *code_of_mean(wlm_context *context, size_t *size) {
  wlm_stats stats = STATS(.rows = 20000, .cols = 20000, .nnz = 200000);
  wlmi_limits limits = context->device->info.limits;
  wlmi_decision d;
  HELD(wlmi_program) program;
  wlmi_spec spec;
  char *code;
  limits.any_width = 0;
  CHECK(wlmi_spec_from_key("op=copy_b.mean,dense=f32,rowptr=i32,colind=i32,values=none,sample=none", 64, &spec) ==
        WLM_OK);
  wlmi_stats_estimate(stats.rows, stats.cols, stats.nnz, &stats);
  wlmi_cell_centre_of(&stats, 1, &stats);
  CHECK(wlmi_context_select(context, NULL, &stats, WLMI_USE_ONE_CALL, &spec, &d) == WLM_OK);
  CHECK(wlmi_generator_emit_variant(context->generator, &d.entries[0].variant, &spec, &limits, &program) == WLM_OK);
  const wlmi_hash source = wlmi_hash_text(program.source);
  CHECK(wlmi_archives_get_source(&context->archives, &context->device->info, source, (void **)&code, size) == WLM_OK);
  return code;
}

static void check_means(void) {
  size_t size;
  OWNED(wlm_context) *context = open_without_compiler(90, "");
  WLM_FREED char *code = code_of_mean(context, &size);
  CHECK(size > 1000 && !memcmp(code, "\177ELF", 4));
  wlmi_free(code);
  wlm_context_destroy(context);
  context = open_without_compiler(120, "");
  code = code_of_mean(context, &size);
  CHECK(strlen(code) + 1 == size && strstr(code, "\n.target sm_90\n"));
}

/* Asks another process, because a process looks for NVRTC once. */
static void needs_nvrtc(void) {
  int major, minor, how;
  const pid_t child = fork();
  if (!child) _exit(wlmi_nvrtc_version(&major, &minor) != WLM_OK);
  assert_int_equal(waitpid(child, &how, 0), child);
  if (how) test_missing("nvrtc", "NVRTC", "it cannot be loaded");
}

TEST(every_width_and_model_has_a_kernel) {
  needs_nvrtc();
  in_a_process(build);
  in_a_process(check);
  in_a_process(check_models);
}

TEST(ptx_comes_with_machine_code) {
  needs_nvrtc();
  in_a_process(build_means);
  in_a_process(check_means);
}

TEST(a_request_is_checked) {
  needs_nvrtc();
  in_a_process(unknown_names_are_refused);
}

static void quiet(void *user, wlm_log_level level, const char *message) { (void)user, (void)level, (void)message; }

static int begin(void **state) {
  wlm_set_log(quiet, NULL, WLM_LOG_WARNING);
  return folder_begin(state);
}

GROUP(begin, folder_end)
