/* Which kernels an exported library contains: those that the selection chooses, on every device of the target that was
 * measured, for every matrix of the export and for the centre of its cell, for one call and for many. The same code
 * chooses from the same tables in the exported library, so it contains what it chooses for these. */
#include <string.h>

#include "cli/export.h"
#include "cli/progress.h"
#include "core/base/memory.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "exported/learn.h"
#include "runtime/archived.h"
#include "runtime/cuda/nvrtc.h"
#include "tuner/compile_ahead.h"

/* Calls of which plans are made: one, and so many that preparing pays if it ever does. */
static const int64_t expected_calls[] = {1, 1000000};
enum { CALLS = sizeof expected_calls / sizeof *expected_calls };

/* One problem of one target, and how often each of its candidates was chosen. */
typedef struct covering {
  wlmi_export *e;
  wlmi_export_target *target;
  const wlmi_export_problem *problem;
  const wlmi_candidate_list *list;
  int64_t *chosen;
} covering;

/* ---- choices -------------------------------------------------------------------------------------------- */

/* Threads call it side by side. */
static wlm_status choose(covering *c, const wlmi_snapshot *snapshot, const wlmi_limits *limits, const wlm_stats *stats,
                         wlmi_use use) {
  const wlmi_variant_set set = {.families = c->list->families, .list = c->list};
  wlmi_spec spec = c->problem->spec;
  wlmi_decision decision;
  for (int i = 0; i < CALLS; i++) {
    spec.problem.policy.expected_calls = expected_calls[i];
    const wlmi_request request = {stats, use, c->problem->key, &spec, limits, &set};
    const wlm_status status = wlmi_select(snapshot, &request, &decision);
#pragma omp atomic
    c->target->choices++;
    if (status == WLM_ERR_NOT_FOUND) continue;
    if (status != WLM_OK) return status;
    const wlmi_candidate *candidate = wlmi_candidate_find(c->list, &decision.entries[0].variant);
    if (!candidate) continue;
#pragma omp atomic
    c->chosen[candidate - c->list->candidates]++;
  }
  return WLM_OK;
}

static wlm_status choose_for(covering *c, const wlmi_snapshot *snapshot, const wlmi_limits *limits,
                             const wlm_stats *stats) {
  wlm_stats centre;
  for (wlmi_use use = WLMI_USE_MEASURED; use <= WLMI_USE_ONE_CALL; use++) {
    wlmi_cell_centre_of(stats, use != WLMI_USE_MEASURED, &centre);
    WLM_CHECK(choose(c, snapshot, limits, stats, use));
    WLM_CHECK(choose(c, snapshot, limits, &centre, use));
  }
  return WLM_OK;
}

/* A thread keeps the text of its error, so what failed is asked once more. */
static wlm_status choose_for_all(covering *c, const wlmi_snapshot *snapshot, const wlmi_limits *limits) {
  const wlmi_export *e = c->e;
  int64_t failed = -1;
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < e->stats_count; i++) {
    if (choose_for(c, snapshot, limits, &e->stats[i]) == WLM_OK) continue;
#pragma omp atomic write
    failed = i;
  }
  return failed < 0 ? WLM_OK : choose_for(c, snapshot, limits, &e->stats[failed]);
}

static wlm_status choose_on(covering *c, const wlmi_device_record *device, const char *device_class) {
  const wlmi_exported tables = {.classes = c->e->classes, .class_count = c->e->class_count};
  wlmi_limits limits = c->target->limits;
  wlmi_snapshot *snapshot = NULL;
  const wlmi_candidate_list *const own = c->list, *list = NULL;
  wlm_status status;
  limits.processors = device->processors;
  WLM_TRY(wlmi_generator_describe(c->e->generator, &c->problem->spec, &limits, &list));
  c->list = list;
  WLM_TRY(wlmi_snapshot_create(&snapshot));
  snapshot->families = wlmi_generator_families(c->e->generator);
  WLM_TRY(wlmi_exported_learn(&tables, device, device_class, snapshot));
  WLM_TRY(choose_for_all(c, snapshot, &limits));
done:
  c->list = own;
  wlmi_candidates_drop(list);
  wlmi_snapshot_release(snapshot);
  return status;
}

/* A transposed product with a matrix that is used once is scattered by a kernel that is not measured. */
static void choose_scatter(covering *c) {
  if (c->problem->spec.problem.operation != WLM_SPMM) return;
  for (int64_t i = 0; i < c->list->count; i++) c->chosen[i] += c->list->candidates[i].walks_a && !c->chosen[i];
}

static wlm_status choose_all(covering *c) {
  const char *kind = c->target->limits.target == WLMI_TARGET_HOST ? "host" : "cuda";
  char arch[16] = "";
  int devices = 0;
  if (*kind == 'c') snprintf(arch, sizeof arch, "sm_%d", c->target->limits.arch);
  for (int64_t i = 0; i < c->e->class_count; i++) {
    const wlmi_exported_class *class = &c->e->classes[i];
    if (strcmp(class->device.kind, kind) || (*arch && strcmp(class->device.arch, arch))) continue;
    WLM_CHECK(choose_on(c, &class->device, class->name));
    devices++;
  }
  if (!devices)
    WLM_CHECK(choose_on(c, &(wlmi_device_record){"", (char *)kind, arch, c->target->limits.processors, 0}, ""));
  choose_scatter(c);
  return WLM_OK;
}

/* ---- emitting ------------------------------------------------------------------------------------------- */

static wlm_status keep_pass(wlmi_export *e, wlmi_pass pass, uint16_t *index) {
  if (pass.processors) pass.wave /= pass.processors;
  pass.processors = pass.processors != 0;
  for (int64_t i = 0; i < e->pass_count; i++) {
    const wlmi_pass *p = &e->passes[i];
    if (strcmp(p->kernel, pass.kernel) || p->when != pass.when || p->units != pass.units || p->axis != pass.axis ||
        p->units_per_block != pass.units_per_block || p->columns_per_block != pass.columns_per_block ||
        p->wave != pass.wave || p->processors != pass.processors || p->threads != pass.threads ||
        p->shared_bytes != pass.shared_bytes || p->dependent != pass.dependent ||
        p->nonzeros_per_unit != pass.nonzeros_per_unit)
      continue;
    *index = (uint16_t)i;
    return WLM_OK;
  }
  if (e->pass_count == UINT16_MAX) return wlmi_fail(WLM_ERR_OVERFLOW, "more than %d passes", UINT16_MAX);
  WLM_CHECK(wlmi_grow((void **)&e->passes, e->pass_count, &e->pass_capacity, sizeof *e->passes, "passes"));
  *index = (uint16_t)e->pass_count;
  e->passes[e->pass_count++] = pass;
  return WLM_OK;
}

/* Takes the program's source. */
static wlm_status keep_image(wlmi_export *e, const wlmi_export_target *t, wlmi_program *program, int64_t *index) {
  const wlmi_hash source = wlmi_hash_text(program->source);
  const wlmi_hash key = wlmi_archived_key(source, t->is_ptx ? WLMI_CODE_PTX : WLMI_CODE_MACHINE, t->limits.arch, "");
  for (*index = 0; *index < e->image_count; ++*index)
    if (wlmi_hash_equal(e->images[*index].key, key)) return WLM_OK;
  WLM_CHECK(wlmi_grow((void **)&e->images, e->image_count, &e->image_capacity, sizeof *e->images, "kernels"));
  e->images[e->image_count++] =
      (wlmi_exported_source){.key = key, .program = *program, .limits = t->limits, .is_ptx = t->is_ptx};
  program->source = NULL;
  return WLM_OK;
}

/* Takes the program's source, also if it fails. */
static wlm_status add_kernel(wlmi_export *e, wlmi_export_target *t, wlmi_exported_kernel row, wlmi_program *program) {
  int64_t text;
  wlm_status status;
  row.pass_count = (uint8_t)program->pass_count;
  row.deterministic = program->deterministic != 0;
  row.uses_b = program->uses_b != 0;
  row.walks_a = program->walks_a != 0;
  row.workspace = program->workspace;
  row.prepared = program->prepared;
  for (int i = 0; i < program->pass_count; i++) WLM_TRY(keep_pass(e, program->passes[i], &row.passes[i]));
  WLM_TRY(wlmi_strings_keep(&e->texts, program->variant, &text));
  row.name = e->texts.texts[text];
  WLM_TRY(wlmi_strings_keep(&e->texts, program->split, &text));
  row.split = e->texts.texts[text];
  WLM_TRY(keep_image(e, t, program, &row.image));
  WLM_TRY(wlmi_grow((void **)&t->kernels, t->kernel_count, &t->kernel_capacity, sizeof *t->kernels, "kernels"));
  t->kernels[t->kernel_count++] = row;
done:
  wlmi_program_release(program);
  return status;
}

static wlm_status add_helper(wlmi_export *e, wlmi_export_target *t, const wlmi_spec *spec, wlmi_helper helper) {
  const wlmi_exported_kernel row = {.spec = wlmi_spec_id(spec), .helper = (uint8_t)helper};
  wlmi_program program = {0};
  if (wlmi_exported_kernel_of(&(wlmi_exported_target){.kernels = t->kernels, .kernel_count = t->kernel_count},
                              &row.spec, &row.variant, helper))
    return WLM_OK;
  WLM_CHECK(wlmi_generator_emit_program(e->generator, helper, NULL, spec, &t->limits, &program));
  return add_kernel(e, t, row, &program);
}

static wlm_status add_helpers(wlmi_export *e, wlmi_export_target *t, const wlmi_spec *spec) {
  wlm_csr types = WLM_CSR_INIT;
  wlmi_spec of_types, gradient = wlmi_spec_gradient(spec);
  WLM_CHECK(wlmi_spec_of_types(&types, &of_types));
  WLM_CHECK(add_helper(e, t, &of_types, WLMI_HELPER_LAYOUT)); /* it depends on no types */
  if (spec->problem.want_argmax && spec->problem.operation != WLM_MESSAGE)
    WLM_CHECK(add_helper(e, t, &gradient, WLMI_HELPER_GRADIENT));
  if (t->limits.target == WLMI_TARGET_HOST) return WLM_OK;
  types.rowptr_type = spec->rowptr_type;
  types.colind_type = spec->colind_type;
  WLM_CHECK(wlmi_spec_of_types(&types, &of_types));
  for (int helper = WLMI_HELPER_STATS; helper <= WLMI_HELPER_BLOCKS; helper++)
    WLM_CHECK(add_helper(e, t, &of_types, (wlmi_helper)helper));
  return WLM_OK;
}

/* The general kernel is the one that was chosen most often of those that need no preparing and walk op(A). */
static wlm_status add_chosen(covering *c, int64_t *general) {
  wlmi_export *e = c->e;
  wlmi_program program;
  int64_t most = 0;
  *general = -1;
  for (int64_t i = 0; i < c->list->count; i++) {
    const wlmi_candidate *candidate = &c->list->candidates[i];
    const wlmi_exported_kernel row = {.spec = wlmi_spec_id(&c->problem->spec), .variant = candidate->value};
    if (!c->chosen[i]) continue;
    WLM_CHECK(
        wlmi_generator_emit_variant(e->generator, &candidate->value, &c->problem->spec, &c->target->limits, &program));
    WLM_CHECK(add_kernel(e, c->target, row, &program));
    if (candidate->prepares || candidate->walks_a || c->chosen[i] <= most) continue;
    most = c->chosen[i];
    *general = c->target->kernel_count - 1;
  }
  return WLM_OK;
}

static wlm_status take_candidates(wlmi_export *e, const wlmi_candidate_list *list, wlmi_exported_candidate **out) {
  WLM_CHECK(wlmi_alloc_array(list->count, sizeof **out, "candidates", (void **)out));
  for (int64_t i = 0; i < list->count; i++) {
    const wlmi_candidate *c = &list->candidates[i];
    (*out)[i] = (wlmi_exported_candidate){.value = c->value,
                                          .launches = (uint8_t)c->launches,
                                          .prepares = c->prepares != 0,
                                          .whole_rows = c->whole_rows != 0,
                                          .walks_a = c->walks_a != 0};
    WLM_CHECK(keep_pass(e, c->pass, &(*out)[i].pass));
  }
  return WLM_OK;
}

/* A problem that nothing serves on this target is left out. */
static wlm_status cover_problem(wlmi_export *e, wlmi_export_target *t, int64_t index) {
  covering c = {.e = e, .target = t, .problem = &e->problems[index]};
  wlmi_exported_problem row = {.spec = wlmi_spec_id(&c.problem->spec)};
  wlmi_exported_candidate *candidates = NULL;
  const int64_t before = t->kernel_count;
  wlm_status status;
  WLM_TRY(wlmi_generator_describe(e->generator, &c.problem->spec, &t->limits, &c.list));
  WLM_TRY(wlmi_alloc_array(c.list->count + 1, sizeof *c.chosen, "choices", (void **)&c.chosen));
  memset(c.chosen, 0, (size_t)(c.list->count + 1) * sizeof *c.chosen);
  WLM_TRY(choose_all(&c));
  WLM_TRY(add_chosen(&c, &row.general));
  if (row.general < 0) {
    t->kernel_count = before;
    wlmi_log(WLM_LOG_WARNING, "not exported: no kernel serves %s with n = %lld on this target", c.problem->name,
             (long long)c.problem->n);
    goto done;
  }
  WLM_TRY(add_helpers(e, t, &c.problem->spec));
  WLM_TRY(take_candidates(e, c.list, &candidates));
  row.candidate_count = c.list->count;
  WLM_TRY(wlmi_grow((void **)&t->of, t->problem_count, &t->of_capacity, sizeof *t->of, "problems"));
  WLM_TRY(wlmi_grow((void **)&t->problems, t->problem_count, &t->problem_capacity, sizeof *t->problems, "problems"));
  row.candidates = candidates;
  candidates = NULL;
  t->of[t->problem_count] = index;
  t->problems[t->problem_count++] = row;
done:
  wlmi_free(candidates);
  wlmi_free(c.chosen);
  wlmi_candidates_drop(c.list);
  return status;
}

/* ---- compiling ------------------------------------------------------------------------------------------ */

/* The kernels of GPUs. */
typedef struct compilation {
  wlmi_exported_source **images;
  int64_t count;
  wlmi_progress progress;
} compilation;

static wlm_status compile(void *user, int64_t i) {
  wlmi_exported_source *image = ((compilation *)user)->images[i];
  const wlmi_program *p = &image->program;
  return wlmi_nvrtc_compile(p->source, p->variant, image->limits.arch, image->is_ptx, &image->data, &image->size, NULL);
}

static wlm_status report(void *user, int64_t done) {
  compilation *c = user;
  wlmi_progress_show(&c->progress, done, c->count, "");
  return WLM_OK;
}

/* Compiling takes much longer than choosing, so the time left is that of compiling alone. */
static wlm_status compile_all(wlmi_export *e) {
  compilation c = {.count = 0};
  WLM_CHECK(wlmi_alloc_array(e->image_count, sizeof *c.images, "kernels", (void **)&c.images));
  for (int64_t i = 0; i < e->image_count; i++)
    if (e->images[i].limits.target != WLMI_TARGET_HOST) c.images[c.count++] = &e->images[i];
  wlmi_progress_begin(&c.progress, 1, 0);
  wlmi_progress_next(&c.progress, "compile");
  wlmi_progress_show(&c.progress, 0, c.count, "");
  const wlm_status status = wlmi_compile_each(c.count, compile, report, &c);
  wlmi_free(c.images);
  return status;
}

/* The problems and widths of each target. */
static wlm_status choose_kernels(wlmi_export *e, const char *note) {
  wlmi_progress progress;
  wlmi_progress_begin(&progress, e->target_count, 0);
  for (int t = 0; t < e->target_count; t++) {
    char name[32], title[48];
    wlmi_export_target_name(&e->targets[t], name);
    snprintf(title, sizeof title, "choose for %s", name);
    wlmi_progress_next(&progress, title);
    for (int64_t i = 0; i < e->problem_count; i++) {
      wlmi_progress_show(&progress, i, e->problem_count, note);
      WLM_CHECK(cover_problem(e, &e->targets[t], i));
    }
  }
  return WLM_OK;
}

wlm_status wlmi_export_cover(wlmi_export *e) {
  int major, minor, has_gpu = 0;
  for (int t = 0; t < e->target_count; t++) has_gpu |= e->targets[t].limits.target != WLMI_TARGET_HOST;
  if (has_gpu) WLM_CHECK(wlmi_nvrtc_version(&major, &minor)); /* before minutes of choosing */
  wlm_status status = choose_kernels(e, has_gpu ? "then they are compiled" : "");
  if (status == WLM_OK && has_gpu) status = compile_all(e);
  wlmi_progress_clear();
  return status;
}
