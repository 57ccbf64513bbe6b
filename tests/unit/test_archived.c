/* Kernels of an archive on the cuda device, with a fake driver (tests/fake_cuda): when they are used, what is chosen
 * where there is no compiler, and which archive is opened. Each test is a separate process, because the driver is
 * opened once. The archives hold what the fake driver loads. */
#include "core/base/memory.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "fake_cuda/fake_process.h"
#include "runtime/archived.h"
#include "runtime/decide.h"
#include "runtime/devices.h"
#include "runtime/purpose.h"
#include "support/folder.h"
#include "support/test.h"

static const char key_of_sums[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
static test_folder place;
static int compilations, warnings, emissions;
static int has_version = 1; /* archives are of this version of warploom */
static char last_warning[1024];

static void count_warning(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  warnings++;
  snprintf(last_warning, sizeof last_warning, "%s", message);
}

static void (*body_of_process)(void);

static void body(void) {
  fake->any_code = 1;
  folder_make(&place);
  wlm_set_log(count_warning, NULL, WLM_LOG_WARNING);
  body_of_process();
  folder_remove(&place);
}

static void in_a_folder(void (*of)(void)) {
  body_of_process = of;
  in_a_process(body);
}

/* ---- writing archives ---------------------------------------------------------------------------------------- */

typedef struct contained {
  const char *variant, *key, *image;
  int64_t n;
} contained;

/* Writes an archive of these kernels for sm_ARCH. */
static const char *write_archive(const char *name, wlmi_code code, int arch, const contained *list, int count) {
  wlmi_archived_kernel kernels[64];
  wlmi_generator *generator;
  wlmi_device *device;
  int64_t written = 0;
  CHECK(wlmi_device_open("cuda", &device) == WLM_OK);
  CHECK(wlmi_generator_create(NULL, &generator) == WLM_OK);
  for (int i = 0; i < count; i++) {
    const wlmi_limits *limits = &device->info.limits;
    const char *image = list[i].image, *flags = device->info.flags;
    HELD(wlmi_program) program;
    wlmi_variant variant;
    wlmi_spec spec;
    wlmi_hash purposes[2];
    int purpose_count;
    CHECK(wlmi_spec_from_key(list[i].key, list[i].n, &spec) == WLM_OK);
    CHECK(wlmi_variant_parse(wlmi_generator_families(generator), list[i].variant, &variant) == WLM_OK);
    CHECK(wlmi_generator_emit_variant(generator, &variant, &spec, limits, &program) == WLM_OK);
    const wlmi_hash text = wlmi_hash_text(program.source);
    CHECK(wlmi_purposes_of(generator, &variant, &spec, limits, text, purposes, &purpose_count) == WLM_OK);
    kernels[written++] = (wlmi_archived_kernel){wlmi_archived_key(text, code, arch, flags), image, strlen(image) + 1};
    for (int k = 0; k < purpose_count; k++) {
      kernels[written++] = (wlmi_archived_kernel){.key = purposes[k]};
      kernels[written++] = (wlmi_archived_kernel){.key = wlmi_archived_key(purposes[k], code, arch, flags)};
    }
  }
  kernels[written++] = (wlmi_archived_kernel){.key = has_version ? wlmi_generator_version() : (wlmi_hash){0, 0}};
  wlmi_generator_destroy(generator);
  device->ops->close(device);
  CHECK(wlmi_kernel_archive_write(folder_file(&place, name), kernels, written, NULL) == WLM_OK);
  return place.file;
}

static wlm_status compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  (void)device, (void)program;
  compilations++;
  *size = sizeof FAKE_CUDA_IMAGE;
  *image = wlmi_strdup(FAKE_CUDA_IMAGE);
  return *image ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "image");
}

static wlm_status refuse(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  (void)device, (void)program;
  *image = NULL;
  *size = 0;
  return wlmi_fail(WLM_ERR_NO_COMPILER, "no compiler");
}

/* Opens a context whose compiler is the one above, or that has none. */
static wlm_context *open_with(wlm_context_options options, const char *archive, int has_compiler) {
  static wlmi_device_ops ops;
  wlm_context *context;
  options.device = "cuda";
  options.database = options.kernel_cache = "";
  if (!options.system_database) options.system_database = "";
  options.kernel_archive = archive;
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
  ops = *context->device->ops;
  ops.compile = has_compiler ? compile : refuse;
  context->device->ops = &ops;
  if (has_compiler) context->device->info.limits.any_width = 0; /* as with the real one */
  snprintf(context->device->info.compiler, sizeof context->device->info.compiler, "%s", has_compiler ? "fake" : "");
  return context;
}

static wlm_context *open_context(const char *archive, int has_compiler) {
  const wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  return open_with(options, archive, has_compiler);
}

static wlm_status load(wlm_context *context, const char *key, int64_t n, const char *name) {
  wlmi_loaded loaded;
  wlmi_variant variant;
  wlmi_spec spec;
  CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
  CHECK(wlmi_variant_parse(wlmi_generator_families(context->generator), name, &variant) == WLM_OK);
  return wlmi_context_load(context, &(wlmi_wanted){.spec = &spec, .variant = variant}, &loaded);
}

static wlmi_decision choose(wlm_context *context, const char *key, int64_t n) {
  wlm_stats stats = STATS(.rows = 1000, .cols = 1000, .nnz = 8000, .longest = 20, .cv = 0.5);
  wlmi_decision decision;
  wlmi_spec spec;
  CHECK(wlmi_spec_from_key(key, n, &spec) == WLM_OK);
  wlmi_context_select(context, NULL, &stats, WLMI_USE_MEASURED, &spec, &decision);
  return decision;
}

/* ---- use ------------------------------------------------------------------------------------------------------ */

static const char vec[] = "row_vec/lanes=16,vector=4,batch=8", other[] = "row_vec/lanes=8,vector=4,batch=8";

TEST_IN(in_a_folder, an_archived_kernel_is_not_compiled) {
  const contained list[] = {{vec, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 1);
  CHECK(load(context, key_of_sums, 64, vec) == WLM_OK && !compilations);
  CHECK(load(context, key_of_sums, 256, vec) == WLM_OK && !compilations); /* the same source */
  CHECK(load(context, key_of_sums, 64, other) == WLM_OK && compilations == 1);
}

/* Machine code of sm_80 runs on sm_86 and not on sm_90, PTX on all later ones. */
TEST_IN(in_a_folder, code_of_older_architectures) {
  const contained list[] = {{vec, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  static const struct {
    int device, arch;
    wlmi_code code;
    int runs;
  } cases[] = {{86, 80, WLMI_CODE_MACHINE, 1},   {89, 80, WLMI_CODE_MACHINE, 1},   {89, 86, WLMI_CODE_MACHINE, 1},
               {90, 80, WLMI_CODE_MACHINE, 0},   {86, 89, WLMI_CODE_MACHINE, 0},   {100, 90, WLMI_CODE_MACHINE, 0},
               {120, 100, WLMI_CODE_MACHINE, 0}, {120, 121, WLMI_CODE_MACHINE, 0}, {121, 120, WLMI_CODE_MACHINE, 1},
               {90, 80, WLMI_CODE_PTX, 1},       {100, 90, WLMI_CODE_PTX, 1},      {120, 90, WLMI_CODE_PTX, 1},
               {80, 90, WLMI_CODE_PTX, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake->arch = cases[i].device;
    compilations = 0;
    OWNED(wlm_context) *context = open_context(write_archive("a", cases[i].code, cases[i].arch, list, 1), 1);
    CHECK(load(context, key_of_sums, 64, vec) == WLM_OK);
    if (compilations == cases[i].runs) fprintf(stderr, "case %zu\n", i), _exit(1);
  }
}

/* Of several codes that run, the machine code of the nearest minor version is taken, and PTX last. */
TEST_IN(in_a_folder, the_nearest_code_is_taken) {
  static const struct {
    const char *image;
    wlmi_code code;
    int arch;
  } codes[] = {{"ptx of 80", WLMI_CODE_PTX, 80},
               {"code of 80", WLMI_CODE_MACHINE, 80},
               {"code of 86", WLMI_CODE_MACHINE, 86},
               {"ptx of 90", WLMI_CODE_PTX, 90},
               {"code of 90", WLMI_CODE_MACHINE, 90}};
  static const struct {
    int device;
    const char *image;
  } cases[] = {{80, "code of 80"}, {86, "code of 86"}, {89, "code of 86"}, {90, "code of 90"}, {120, "ptx of 90"}};
  const wlmi_hash source_hash = {1, 2};
  wlmi_archived_kernel kernels[5];
  for (int i = 0; i < 5; i++)
    kernels[i] = (wlmi_archived_kernel){wlmi_archived_key(source_hash, codes[i].code, codes[i].arch, "flags"),
                                        codes[i].image, strlen(codes[i].image) + 1};
  CHECK(wlmi_kernel_archive_write(folder_file(&place, "several"), kernels, 5, NULL) == WLM_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_archives archives = {0};
    wlmi_device_info device = {.flags = "flags"};
    char *image;
    size_t size;
    snprintf(device.arch, sizeof device.arch, "sm_%d", cases[i].device);
    CHECK(wlmi_archives_add(&archives, place.file, 0) == WLM_OK);
    CHECK(wlmi_archives_get_source(&archives, &device, source_hash, (void **)&image, &size) == WLM_OK);
    CHECK(!strcmp(image, cases[i].image));
    wlmi_free(image);
    wlmi_archives_close(&archives);
  }
}

/* An archived kernel that does not load is compiled. */
TEST_IN(in_a_folder, a_kernel_that_does_not_load) {
  const contained list[] = {{vec, key_of_sums, "no code", 64}};
  fake->any_code = 0;
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 1);
  load(context, key_of_sums, 64, vec); /* the fake driver has no kernel of this name */
  CHECK(compilations == 1 && warnings == 1 && strstr(last_warning, "kernel archive: "));
}

TEST_IN(in_a_folder, the_environment_names_an_archive) {
  const contained list[] = {{vec, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  setenv("WARPLOOM_KERNELS", write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 1);
  OWNED(wlm_context) *context = open_context(NULL, 1);
  CHECK(load(context, key_of_sums, 64, vec) == WLM_OK && !compilations);
  wlm_context_destroy(context);
  context = open_context("", 1); /* the option comes first */
  CHECK(!context->archives.count && load(context, key_of_sums, 64, vec) == WLM_OK && compilations == 1);
}

TEST_IN(in_a_folder, a_damaged_archive_is_left_out) {
  write_whole(folder_file(&place, "damaged"), "wlmkerns and not much more than that, or anything", 49);
  OWNED(wlm_context) *context = open_context(place.file, 1);
  CHECK(!context->archives.count && warnings == 1 && strstr(last_warning, "continuing without a kernel archive: "));
  CHECK(strstr(last_warning, place.file) && load(context, key_of_sums, 64, vec) == WLM_OK && compilations == 1);
}

/* The start of the image that the context's archives have for a variant of sums with n = 64; free(). */
static char *image_of(wlm_context *context, const char *variant) {
  HELD(wlmi_program) program;
  wlmi_spec spec;
  char *image;
  size_t size;
  CHECK(wlmi_spec_from_key(key_of_sums, 64, &spec) == WLM_OK);
  CHECK(wlmi_generator_emit(context->generator, variant, &spec, &context->device->info.limits, &program) == WLM_OK);
  const wlmi_hash hash = wlmi_hash_text(program.source);
  CHECK(wlmi_archives_get_source(&context->archives, &context->device->info, hash, (void **)&image, &size) == WLM_OK);
  return image;
}

static void assert_images(const char *const layers[2], const char *own, const char *of_vec, const char *of_other) {
  wlm_context_options options = CONTEXT_OPTIONS(.layers = layers, .layer_count = 2);
  OWNED(wlm_context) *context = open_with(options, own, 1);
  char *images[] = {image_of(context, vec), image_of(context, other)};
  CHECK(context->archives.count == 3 && !context->layers.count);
  CHECK(!strcmp(images[0], of_vec) && !strcmp(images[1], of_other));
  CHECK(load(context, key_of_sums, 64, vec) == WLM_OK && !compilations);
  wlmi_free(images[0]), wlmi_free(images[1]);
}

/* Archives among the layers of a context: the last named one is searched first, then the context's own archive. */
TEST_IN(in_a_folder, archives_are_layers) {
  const contained both[] = {{vec, key_of_sums, "of the first", 64}, {other, key_of_sums, "of the first", 64}};
  const contained one[] = {{vec, key_of_sums, "of the second", 64}};
  const contained mine[] = {{vec, key_of_sums, "mine", 64}, {other, key_of_sums, "mine", 64}};
  char first[320], second[320];
  snprintf(first, sizeof first, "%s", write_archive("first", WLMI_CODE_MACHINE, 90, both, 2));
  snprintf(second, sizeof second, "%s", write_archive("second", WLMI_CODE_MACHINE, 90, one, 1));
  const char *own = write_archive("own", WLMI_CODE_MACHINE, 90, mine, 2);
  assert_images((const char *const[]){first, second}, own, "of the second", "of the first");
  assert_images((const char *const[]){second, first}, own, "of the first", "of the first");
  assert_images((const char *const[]){second, second}, own, "of the second", "mine");
}

/* ---- without a compiler --------------------------------------------------------------------------------------- */

static const char wide4[] = "row_vec/lanes=32,vector=4,batch=4", wide2[] = "row_vec/lanes=32,vector=2,batch=4",
                  wide1[] = "row_vec/lanes=32,vector=1,batch=4";

/* The selection takes what the archive has, for any number of columns, and says once that it may not be the best. */
TEST_IN(in_a_folder, the_best_contained_kernel_is_chosen) {
  const contained list[] = {{wide4, key_of_sums, FAKE_CUDA_IMAGE, 256},
                            {wide2, key_of_sums, FAKE_CUDA_IMAGE, 258},
                            {wide1, key_of_sums, FAKE_CUDA_IMAGE, 257}};
  static const struct {
    int64_t n;
    const char *variant;
  } cases[] = {{1, wide1}, {7, wide1}, {40, wide4}, {47, wide1}, {602, wide2}};
  setenv("WARPLOOM_NVRTC", "/nowhere", 1);
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 3), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_decision d = choose(context, key_of_sums, cases[i].n);
    CHECK(!strcmp(d.variant, cases[i].variant) && d.step == WLMI_STEP_RULE);
    CHECK(load(context, key_of_sums, cases[i].n, d.variant) == WLM_OK);
  }
  CHECK(warnings == 1 && strstr(last_warning, "there is no compiler"));
}

/* Counts emitted texts of variants. */
wlm_status __real_wlmi_generator_emit_program(wlmi_generator *generator, wlmi_helper helper,
                                              const wlmi_variant *variant, const wlmi_spec *spec,
                                              const wlmi_limits *limits, wlmi_program *program);
wlm_status __wrap_wlmi_generator_emit_program(wlmi_generator *generator, wlmi_helper helper,
                                              const wlmi_variant *variant, const wlmi_spec *spec,
                                              const wlmi_limits *limits, wlmi_program *program) {
  emissions += helper == WLMI_HELPER_NONE;
  return __real_wlmi_generator_emit_program(generator, helper, variant, spec, limits, program);
}

/* A kernel is emitted once, when it is loaded. What else there is to choose from is not emitted. */
TEST_IN(in_a_folder, only_used_kernels_are_emitted) {
  const contained list[] = {{wide4, key_of_sums, FAKE_CUDA_IMAGE, 256},
                            {wide2, key_of_sums, FAKE_CUDA_IMAGE, 258},
                            {wide1, key_of_sums, FAKE_CUDA_IMAGE, 257},
                            {vec, key_of_sums, FAKE_CUDA_IMAGE, 64},
                            {other, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  static const int64_t columns[] = {1, 40, 47, 64, 602};
  setenv("WARPLOOM_NVRTC", "/nowhere", 1);
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 5), 0);
  emissions = 0;
  for (int i = 0; i < 5; i++) {
    const wlmi_decision d = choose(context, key_of_sums, columns[i]);
    CHECK(emissions == i);
    CHECK(load(context, key_of_sums, columns[i], d.variant) == WLM_OK && emissions == i + 1);
    CHECK(load(context, key_of_sums, columns[i], d.variant) == WLM_OK && emissions == i + 1);
  }
}

/* Texts that differ with n are found for their n, and those of heads for the columns of a head. */
TEST_IN(in_a_folder, kernels_are_found_for_their_columns) {
  static const char fold[] = "row_fold/lanes=4,vector=1,batch=2";
  static const char key_of_heads[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,heads=4";
  static const char eight_heads[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,heads=8";
  const contained list[] = {{vec, key_of_sums, FAKE_CUDA_IMAGE, 64},
                            {fold, key_of_sums, FAKE_CUDA_IMAGE, 3},
                            {vec, key_of_heads, FAKE_CUDA_IMAGE, 64}};
  const struct {
    const char *variant, *key;
    int64_t n;
    int found;
  } cases[] = {{vec, key_of_sums, 60, 1},  {vec, key_of_sums, 64, 1},    {other, key_of_sums, 64, 0},
               {fold, key_of_sums, 3, 1},  {fold, key_of_sums, 5, 0},    {vec, key_of_heads, 64, 1},
               {vec, eight_heads, 128, 1}, {other, key_of_heads, 64, 0}, {fold, key_of_heads, 4, 0}};
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 3), 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_variant variant;
    wlmi_spec spec;
    CHECK(wlmi_spec_from_key(cases[i].key, cases[i].n, &spec) == WLM_OK);
    CHECK(wlmi_variant_parse(wlmi_generator_families(context->generator), cases[i].variant, &variant) == WLM_OK);
    CHECK(wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .variant = variant}) == cases[i].found);
    CHECK(load(context, cases[i].key, cases[i].n, cases[i].variant) == WLM_OK);
    if (compilations == cases[i].found) fprintf(stderr, "case %zu\n", i), _exit(1);
    compilations = 0;
  }
}

/* One sentence says that an archive is of another version. */
TEST_IN(in_a_folder, an_archive_of_another_version) {
  const contained list[] = {{vec, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  has_version = 0;
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 1);
  CHECK(warnings == 1 && strstr(last_warning, "is of another version of warploom") && strstr(last_warning, place.file));
  CHECK(load(context, key_of_sums, 64, vec) == WLM_OK && !compilations); /* its text is the same */
}

/* With a compiler the same archive does not change what is chosen. */
TEST_IN(in_a_folder, a_compiler_leaves_the_choice) {
  const contained list[] = {{wide4, key_of_sums, FAKE_CUDA_IMAGE, 256}};
  wlm_context *without = open_context("", 1);
  const wlmi_decision expected = choose(without, key_of_sums, 64);
  wlm_context_destroy(without);
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 1);
  const wlmi_decision found = choose(context, key_of_sums, 64);
  CHECK(!strcmp(expected.variant, found.variant) && strcmp(found.variant, wide4) && !warnings);
}

/* What a plan for 1,000 calls runs that the shipped model decides, and the first other kernels that the model expects
 * to be nearly as fast and slower. */
typedef struct planned {
  char variant[WLMI_VARIANT_NAME], near[WLMI_VARIANT_NAME], far[WLMI_VARIANT_NAME];
} planned;

static planned plan_with(const char *archive, int deterministic) {
  wlm_context_options options = CONTEXT_OPTIONS(.system_database = WLM_SOURCE_DIR "/share/warploom/system.db");
  planned p = {"", "", ""};
  wlm_stats stats;
  wlmi_spec spec;
  OWNED(wlm_context) *context = open_with(options, archive, 1);
  OWNED(wlmi_decided) *decided = NULL;
  wlmi_stats_estimate(20000, 20000, 200000, &stats);
  stats.cv = 0.4, stats.longest = 30;
  CHECK(wlmi_spec_from_key(key_of_sums, 64, &spec) == WLM_OK);
  wlm_csr types = CSR(.values = &types);
  spec.problem.policy.expected_calls = 1000;
  spec.problem.policy.deterministic = deterministic;
  compilations = 0;
  const wlmi_decide_request request = {&spec.problem, &types, &stats, WLMI_USE_MEASURED, NULL};
  CHECK(wlmi_decide(context, &request, &decided) == WLM_OK);
  const wlmi_decision *d = &decided->plan.reason.decision;
  snprintf(p.variant, sizeof p.variant, "%s", d->variant);
  for (int i = 1; i < d->entry_count; i++) {
    const int is_near = d->entries[i].seconds <= wlmi_near_enough_for_plans * d->entries[0].seconds;
    char *name = is_near ? p.near : p.far;
    if (d->entries[i].step == WLMI_STEP_MODEL && !*name) wlmi_entry_print(d, i, name);
  }
  return p;
}

/* A plan runs an archived kernel that the model expects to be nearly as fast as its choice, and no slower one. */
TEST_IN(in_a_folder, a_plan_takes_what_is_nearly_as_fast) {
  fake->name = "NVIDIA H200", fake->processors = 132, fake->l2_bytes = 60 << 20;
  const planned own = plan_with("", 0);
  CHECK(compilations == 1 && *own.near && *own.far);
  const contained fast[] = {{own.near, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  const contained slow[] = {{own.far, key_of_sums, FAKE_CUDA_IMAGE, 64}};
  const char *archive = write_archive("fast", WLMI_CODE_MACHINE, 90, fast, 1);
  planned taken = plan_with(archive, 0);
  CHECK(!compilations && !strcmp(taken.variant, own.near));
  taken = plan_with(archive, 1); /* another kernel may give other bits */
  CHECK(compilations == 1 && !strcmp(taken.variant, own.variant));
  taken = plan_with(write_archive("slow", WLMI_CODE_MACHINE, 90, slow, 1), 0);
  CHECK(compilations == 1 && !strcmp(taken.variant, own.variant));
}

/* A problem of which nothing is contained has the built-in kernel, which reports that it serves sums of f32 alone. */
TEST_IN(in_a_folder, nothing_contained) {
  static const char halves[] = "op=mul.sum,dense=f16,rowptr=i32,colind=i32,values=f16,sample=none";
  const contained list[] = {{wide4, key_of_sums, FAKE_CUDA_IMAGE, 256}};
  OWNED(wlm_context) *context = open_context(write_archive("a", WLMI_CODE_MACHINE, 90, list, 1), 0);
  const wlmi_decision d = choose(context, halves, 64);
  CHECK(d.entry_count == 1 && d.entries[0].step == WLMI_STEP_BUILTIN);
  CHECK(load(context, halves, 64, "row_vec/lanes=8,vector=8,batch=8") == WLM_ERR_NO_COMPILER);
}
