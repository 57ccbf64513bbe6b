#include <stdlib.h>
#include <string.h>

#include "cli/export.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/problem/cell.h"
#include "core/problem/size.h"
#include "core/problem/spec_key.h"
#include "runtime/devices.h"
#include "select/classes.h"

/* ---- targets -------------------------------------------------------------------------------------------- */

static wlm_status host_limits(wlmi_limits *limits) {
  wlmi_device *device = NULL;
  WLM_CHECK(wlmi_device_open("host", &device));
  *limits = device->info.limits;
  device->ops->close(device);
  return WLM_OK;
}

static wlm_status read_target(const char *name, wlmi_export_target *t) {
  int arch = 0, used = 0;
  if (!strcmp(name, "host")) return host_limits(&t->limits);
  t->is_ptx = !strncmp(name, "compute_", 8);
  sscanf(name, t->is_ptx ? "compute_%d%n" : "sm_%d%n", &arch, &used);
  if (used && !name[used] && wlmi_common_gpu_limits(arch, &t->limits) == WLM_OK) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "--arch %s: no such architecture; name host, or sm_ or compute_ and 80, 86, 87, 89, 90, 100, 103 or "
                   "120",
                   name);
}

static wlm_status read_targets(wlmi_export *e, const char *archs) {
  char name[32];
  while (*archs) {
    const size_t length = strcspn(archs, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), archs);
    archs += length + (archs[length] == ',');
    if (e->target_count == WLMI_EXPORT_TARGETS)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--arch takes at most %d names", WLMI_EXPORT_TARGETS);
    wlmi_export_target *t = &e->targets[e->target_count];
    WLM_CHECK(read_target(name, t));
    for (int i = 0; i < e->target_count; i++)
      if (e->targets[i].limits.target == t->limits.target && e->targets[i].limits.arch == t->limits.arch)
        return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--arch names %s twice", name);
    e->target_count++;
  }
  return WLM_OK;
}

void wlmi_export_target_name(const wlmi_export_target *t, char name[32]) {
  if (t->limits.target == WLMI_TARGET_HOST)
    snprintf(name, 32, "host");
  else
    snprintf(name, 32, "%s_%d", t->is_ptx ? "compute" : "sm", t->limits.arch);
}

static int is_for_device(const wlmi_export_target *t, const wlmi_device_record *device) {
  if (t->limits.target == WLMI_TARGET_HOST) return !strcmp(device->kind, "host");
  return !strcmp(device->kind, "cuda") && !strncmp(device->arch, "sm_", 3) && atoi(device->arch + 3) == t->limits.arch;
}

/* ---- problems ------------------------------------------------------------------------------------------- */

/* What keys leave out, behind the key: "+deterministic", "+bias", "+activation=tanh". A message may contain a plus. */
static const char *extras_of(const char *name) {
  const char *types = wlmi_key_types(name);
  return types ? strchr(types, '+') : NULL;
}

static wlm_status read_extras(char *extras, wlm_problem *problem) {
  static const char activation[] = "activation=";
  char *state = NULL;
  for (char *word = strtok_r(extras, "+", &state); word; word = strtok_r(NULL, "+", &state)) {
    if (!strcmp(word, "deterministic"))
      problem->policy.deterministic = 1;
    else if (!strcmp(word, "bias"))
      problem->epilogue.bias = 1;
    else if (!strncmp(word, activation, strlen(activation)))
      problem->epilogue.activation = word + strlen(activation);
    else
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "'+%s' is none of +deterministic, +bias and +activation=EXPRESSION without a plus", word);
  }
  return WLM_OK;
}

/* Joins a spec's problem with more settings and checks it again. */
static wlm_status respecify(wlmi_spec *spec, const wlm_problem *extra) {
  const wlmi_spec plain = *spec;
  wlm_problem problem = plain.problem;
  wlm_csr types = WLM_CSR_INIT;
  problem.custom = *plain.custom ? plain.custom : NULL;
  problem.policy.deterministic = extra->policy.deterministic;
  problem.epilogue = extra->epilogue;
  types.rowptr_type = plain.rowptr_type;
  types.colind_type = plain.colind_type;
  types.value_type = plain.value_type;
  types.has_values = plain.has_values;
  const wlm_status status = wlmi_spec_make(&problem, &types, spec);
  spec->problem.custom = NULL; /* its text stands in the spec */
  return status;
}

static wlm_status add_problem(wlmi_export *e, const char *name, int64_t n) {
  wlmi_export_problem problem = {.n = n};
  wlm_problem extra = WLM_PROBLEM_INIT;
  int64_t text;
  wlm_status status;
  for (int64_t i = 0; i < e->problem_count; i++)
    if (e->problems[i].n == n && !strcmp(e->problems[i].name, name)) return WLM_OK;
  WLM_TRY(wlmi_strings_keep(&e->texts, name, &text));
  problem.name = e->texts.texts[text];
  const char *extras = extras_of(name);
  const size_t length = extras ? (size_t)(extras - name) : strlen(name);
  if (length >= sizeof problem.key) return wlmi_fail(WLM_ERR_UNSUPPORTED, "the problem '%s' is too long", name);
  memcpy(problem.key, name, length);
  WLM_TRY(wlmi_spec_from_key(problem.key, n, &problem.spec));
  if (extras) {
    problem.extras = wlmi_strdup(extras);
    if (!problem.extras) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "problems"));
    WLM_TRY(read_extras(problem.extras, &extra));
    WLM_TRY(respecify(&problem.spec, &extra));
  }
  WLM_TRY(wlmi_grow((void **)&e->problems, e->problem_count, &e->problem_capacity, sizeof *e->problems, "problems"));
  e->problems[e->problem_count++] = problem;
  problem.extras = NULL;
done:
  wlmi_free(problem.extras);
  return status;
}

/* One line of the list: a problem's key or *, widths or *, and names of matrices or sizes as in 1000x1000:50000. */
typedef struct list_line {
  char *key, *widths, *rest;
} list_line;

typedef struct list {
  char *text;
  list_line *lines;
  int64_t count, capacity;
} list;

static void release_list(list *l) {
  wlmi_free(l->text);
  wlmi_free(l->lines);
}

/* "32,64", "*" */
static int are_widths(const char *text) {
  for (;; text++) {
    const size_t length = strcspn(text, ","), digits = strspn(text, "0123456789");
    const int is_number = digits && digits < 11 && atoll(text) >= 1 && atoll(text) <= INT32_MAX;
    if (length != (*text == '*' ? 1 : is_number ? digits : 0) || !length) return 0;
    text += length;
    if (!*text) return 1;
  }
}

static const char byte_order_mark[] = "\xEF\xBB\xBF"; /* some editors write it */

static wlm_status read_list(const char *path, list *l) {
  size_t size;
  char *line_state = NULL;
  WLM_CHECK(wlmi_file_read(path, &l->text, &size));
  for (char *line = strtok_r(l->text, "\n", &line_state); line; line = strtok_r(NULL, "\n", &line_state)) {
    list_line parts = {.rest = NULL};
    if (line == l->text && !strncmp(line, byte_order_mark, strlen(byte_order_mark))) line += strlen(byte_order_mark);
    line[strcspn(line, "#")] = 0;
    parts.key = strtok_r(line, " \t\r", &parts.rest);
    if (!parts.key) continue;
    parts.widths = strtok_r(NULL, " \t\r", &parts.rest);
    if (!parts.widths)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "%s: '%.300s' is not followed by widths; write PROBLEM WIDTHS [MATRIX or ROWSxCOLS:NNZ ...], "
                       "with * for all that was tuned",
                       path, parts.key);
    if (!are_widths(parts.widths))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "%s: the widths '%.60s' are not understood; write numbers from 1 to %d as in 32,64, or *", path,
                       parts.widths, INT32_MAX);
    WLM_CHECK(wlmi_grow((void **)&l->lines, l->count, &l->capacity, sizeof *l->lines, path));
    l->lines[l->count++] = parts;
  }
  return WLM_OK;
}

static int has_width(const char *widths, int64_t n) {
  while (*widths) {
    if (*widths == '*' || atoll(widths) == n) return 1;
    widths += strcspn(widths, ",");
    widths += *widths == ',';
  }
  return 0;
}

static int is_listed(const list *l, const char *key, int64_t n) {
  for (int64_t i = 0; i < l->count; i++)
    if ((!strcmp(l->lines[i].key, "*") || !strcmp(l->lines[i].key, key)) && has_width(l->lines[i].widths, n)) return 1;
  return !l->text;
}

/* Problems and widths that the list names need not be tuned. */
static wlm_status add_named(wlmi_export *e, const list_line *line) {
  if (!strcmp(line->key, "*")) return WLM_OK;
  for (const char *at = line->widths; *at; at += strspn(at, ",")) {
    const wlm_status status = *at == '*' ? WLM_OK : add_problem(e, line->key, atoll(at));
    if (status == WLM_ERR_UNSUPPORTED)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "'%.300s' is no problem of this version; write one as `warploom db list` prints it", line->key);
    if (status != WLM_OK) return status;
    if (*at == '*' && extras_of(line->key))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s' needs widths; what was tuned has no '+'", line->key);
    at += strcspn(at, ",");
  }
  return WLM_OK;
}

/* Adds the stats of a line. A matrix must be one that was measured. */
static wlm_status add_stats(wlmi_export *e, const char *path, list_line *line) {
  for (char *name = strtok_r(NULL, " \t\r", &line->rest); name; name = strtok_r(NULL, " \t\r", &line->rest)) {
    long long rows, cols, nnz;
    int used = 0, found = 0;
    WLM_CHECK(wlmi_grow((void **)&e->stats, e->stats_count, &e->stats_capacity, sizeof *e->stats, "statistics"));
    for (int64_t i = 0; i < e->matrix_count && !found; i++) {
      found = !strcmp(e->matrices[i].name, name);
      if (found) e->stats[e->stats_count++] = e->matrices[i].stats;
    }
    if (found) continue;
    if (sscanf(name, "%lldx%lld:%lld%n", &rows, &cols, &nnz, &used) != 3 || name[used] || rows < 1 || cols < 1 ||
        !wlmi_is_size(rows) || !wlmi_is_size(cols) || !wlmi_is_size(nnz))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "%s: '%s' is neither a matrix that was measured on such devices nor a size; write ROWSxCOLS:NNZ",
                       path, name);
    wlmi_stats_estimate(rows, cols, nnz, &e->stats[e->stats_count++]);
  }
  return WLM_OK;
}

/* Without matrices in the list, choices are made for all that were measured. */
static wlm_status add_all_stats(wlmi_export *e) {
  for (int64_t i = 0; i < e->matrix_count; i++) {
    WLM_CHECK(wlmi_grow((void **)&e->stats, e->stats_count, &e->stats_capacity, sizeof *e->stats, "statistics"));
    e->stats[e->stats_count++] = e->matrices[i].stats;
  }
  return WLM_OK;
}

/* ---- measurements --------------------------------------------------------------------------------------- */

static wlm_status keep_copy(wlmi_export *e, const char *text, char **copy) {
  int64_t at = 0;
  const wlm_status status = wlmi_strings_keep(&e->texts, text ? text : "", &at);
  if (status == WLM_OK) *copy = e->texts.texts[at];
  return status;
}

static wlm_status keep_matrix(wlmi_export *e, const wlmi_measurement_record *r) {
  char *name = NULL;
  for (int64_t i = 0; i < e->matrix_count; i++)
    if (!memcmp(e->matrices[i].stats.fingerprint, r->stats.fingerprint, sizeof r->stats.fingerprint) &&
        !strcmp(e->matrices[i].name, r->matrix_name))
      return WLM_OK;
  WLM_CHECK(wlmi_grow((void **)&e->matrices, e->matrix_count, &e->matrix_capacity, sizeof *e->matrices, "matrices"));
  WLM_CHECK(keep_copy(e, r->matrix_name, &name));
  e->matrices[e->matrix_count++] = (wlmi_export_matrix){name, r->stats};
  return WLM_OK;
}

/* Moves the elements of `more` behind those of a class. */
static wlm_status join(const void **all, int64_t *count, void *more, int64_t more_count, size_t size) {
  char *const joined = wlmi_realloc((void *)*all, (size_t)(*count + more_count + 1) * size);
  if (!joined) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "what was learned on a device class");
  if (more_count) memcpy(joined + (size_t)*count * size, more, (size_t)more_count * size);
  wlmi_free(more);
  *all = joined;
  *count += more_count;
  return WLM_OK;
}

static wlm_status take_learned(wlm_store *store, wlmi_exported_class *c) {
  wlmi_pin_record *pins = NULL;
  wlmi_model_record *models = NULL;
  int64_t count = 0;
  WLM_CHECK(wlmi_store_load_pins(store, c->name, &pins, &count));
  wlm_status status = join((const void **)&c->pins, &c->pin_count, pins, count, sizeof *pins);
  if (status != WLM_OK) wlmi_pins_free(pins, count);
  if (status == WLM_OK) status = wlmi_store_load_models(store, c->name, &models, &count);
  if (status != WLM_OK) return status;
  status = join((const void **)&c->models, &c->model_count, models, count, sizeof *models);
  if (status != WLM_OK) wlmi_model_records_free(models, count);
  return status;
}

/* The union of both databases, as a context loads it. */
static wlm_status take_class(wlmi_export *e, const wlmi_class *from) {
  const wlmi_device_record *device = &from->records[0].device;
  const int64_t at = e->class_count;
  for (int64_t i = 0; i < at; i++)
    if (!strcmp(e->classes[i].name, from->name)) return WLM_OK;
  WLM_CHECK(wlmi_grow((void **)&e->classes, at, &e->class_capacity, sizeof *e->classes, "device classes"));
  WLM_CHECK(wlmi_grow((void **)&e->learned, at, &e->learned_capacity, sizeof *e->learned, "device classes"));
  wlmi_exported_class *c = &e->classes[e->class_count++];
  wlmi_export_learned *l = &e->learned[at];
  *c = (wlmi_exported_class){.device = {.processors = device->processors, .memory_bytes = device->memory_bytes}};
  *l = (wlmi_export_learned){.set = {.count = 0}};
  WLM_CHECK(keep_copy(e, from->name, (char **)&c->name));
  WLM_CHECK(keep_copy(e, device->name, &c->device.name));
  WLM_CHECK(keep_copy(e, device->kind, &c->device.kind));
  WLM_CHECK(keep_copy(e, device->arch, &c->device.arch));
  for (int i = 0; i < 2; i++) {
    if (!e->stores[i]) continue;
    WLM_CHECK(take_learned(e->stores[i], c));
    WLM_CHECK(wlmi_measurement_set_add(&l->set, e->stores[i], c->name));
  }
  WLM_CHECK(wlmi_cases_make(l->set.records, l->set.count, &l->cases));
  c->cases = l->cases.list;
  c->case_count = l->cases.count;
  return WLM_OK;
}

/* Takes the problems and the matrices of a class. Problems of another version are left out: this version has no kernels
 * for them. */
static wlm_status take_problems(wlmi_export *e, const wlmi_class *from, const list *l) {
  for (int64_t i = 0; i < from->count; i++) {
    const wlmi_measurement_record *r = &from->records[i];
    WLM_CHECK(keep_matrix(e, r));
    if (!is_listed(l, r->problem, r->n)) continue;
    wlm_status status = add_problem(e, r->problem, r->n);
    if (status == WLM_ERR_UNSUPPORTED) {
      wlmi_log(WLM_LOG_WARNING, "not exported: %s", wlm_error_detail());
      status = WLM_OK;
    }
    WLM_CHECK(status);
  }
  return WLM_OK;
}

/* What was tuned on any device of a target's kind is a problem to export, for the matrices that were measured there.
 * Only the measurements of its own architecture are used to choose. */
static wlm_status take_store(wlmi_export *e, wlm_store *store, const list *l) {
  wlmi_measurement_record *records = NULL;
  wlmi_class *classes = NULL;
  int64_t count = 0, class_count = 0;
  wlm_status status;
  WLM_TRY(wlmi_store_load(store, NULL, &records, &count));
  WLM_TRY(wlmi_classes_make(records, count, &classes, &class_count));
  for (int64_t i = 0; i < class_count; i++) {
    const wlmi_device_record *device = &classes[i].records[0].device;
    const wlmi_target kind = strcmp(device->kind, "host") ? WLMI_TARGET_CUDA : WLMI_TARGET_HOST;
    int is_kind = 0, is_arch = 0;
    for (int t = 0; t < e->target_count; t++) {
      is_kind |= e->targets[t].limits.target == kind;
      is_arch |= is_for_device(&e->targets[t], device);
    }
    if (is_kind) WLM_TRY(take_problems(e, &classes[i], l));
    if (is_arch) WLM_TRY(take_class(e, &classes[i]));
  }
done:
  wlmi_classes_free(classes, class_count);
  wlmi_measurements_free(records, count);
  return status;
}

wlm_status wlmi_export_gather(wlmi_export *e, const char *archs, const char *list_path) {
  list l = {.text = NULL};
  wlm_status status;
  WLM_TRY(read_targets(e, archs));
  if (list_path) WLM_TRY(read_list(list_path, &l));
  for (int i = 0; i < 2; i++)
    if (e->stores[i]) WLM_TRY(take_store(e, e->stores[i], &l));
  for (int64_t i = 0; i < l.count; i++) {
    status = add_named(e, &l.lines[i]);
    if (status != WLM_OK) WLM_TRY(wlmi_fail_in(status, "%s", list_path));
    WLM_TRY(add_stats(e, list_path, &l.lines[i]));
  }
  if (!e->stats_count) WLM_TRY(add_all_stats(e));
  if (!e->problem_count && list_path)
    status =
        wlmi_fail(WLM_ERR_NOT_FOUND,
                  "%s: names nothing to export; write a problem that `warploom db list` prints, and widths", list_path);
  else if (!e->problem_count)
    status = wlmi_fail(WLM_ERR_NOT_FOUND, "--arch %s: nothing was tuned there; tune first, or name problems with --for",
                       archs);
done:
  release_list(&l);
  return status;
}

void wlmi_export_release(wlmi_export *e) {
  for (int64_t i = 0; i < e->class_count; i++) {
    const wlmi_exported_class *c = &e->classes[i];
    wlmi_pins_free((wlmi_pin_record *)c->pins, c->pin_count);
    wlmi_model_records_free((wlmi_model_record *)c->models, c->model_count);
    wlmi_cases_release(&e->learned[i].cases);
    wlmi_measurement_set_release(&e->learned[i].set);
  }
  for (int t = 0; t < e->target_count; t++) {
    wlmi_export_target *target = &e->targets[t];
    for (int64_t i = 0; i < target->problem_count; i++) wlmi_free((void *)target->problems[i].candidates);
    wlmi_free(target->problems);
    wlmi_free(target->kernels);
    wlmi_free(target->of);
  }
  for (int64_t i = 0; i < e->problem_count; i++) wlmi_free(e->problems[i].extras);
  for (int64_t i = 0; i < e->image_count; i++) {
    wlmi_program_release(&e->images[i].program);
    wlmi_free(e->images[i].data);
  }
  wlmi_free(e->classes);
  wlmi_free(e->learned);
  wlmi_free(e->matrices);
  wlmi_free(e->passes);
  wlmi_free(e->problems);
  wlmi_free(e->images);
  wlmi_free(e->stats);
  wlmi_strings_release(&e->texts);
  for (int i = 0; i < 2; i++) wlmi_store_close(e->stores[i]);
  wlmi_generator_destroy(e->generator);
}
