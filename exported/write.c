#include "exported/write.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"

const char wlmi_exported_by[] = "/* Written by warploom export --format c. */";

/* ---- files ---------------------------------------------------------------------------------------------- */

static wlm_status make_folder(const char *path) {
  if (!mkdir(path, 0777) || errno == EEXIST) return WLM_OK;
  return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
}

wlm_status wlmi_exported_file(const char *folder, const char *name, const void *data, size_t size) {
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  for (const char *slash = strchr(name, '/'); slash && status == WLM_OK; slash = strchr(slash + 1, '/')) {
    wlmi_text_printf(&path, "%s/%.*s", folder, (int)(slash - name), name);
    status = path.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of a file") : make_folder(path.data);
    wlmi_text_release(&path);
  }
  wlmi_text_printf(&path, "%s/%s", folder, name);
  if (path.failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of a file");
  if (status == WLM_OK) status = wlmi_output_write(path.data, data, size);
  wlmi_text_release(&path);
  return status;
}

wlm_status wlmi_exported_text(const char *folder, const char *name, wlmi_text *text) {
  const wlm_status status = text->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "text of %s", name)
                                         : wlmi_exported_file(folder, name, text->data ? text->data : "", text->size);
  wlmi_text_release(text);
  return status;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* A member of a row. NAME is a text in place; NUMBER may be an array. */
typedef struct field {
  const char *name; /* NULL = the last one */
  enum { TEXT, NAME, NUMBER, HASH, REAL } kind;
  size_t offset, size, element;
} field;

#define FIELD(kind, member) \
  { #member, kind, offsetof(ROW, member), sizeof((ROW *)0)->member, sizeof((ROW *)0)->member }
#define T(member) FIELD(TEXT, member)
#define N(member) FIELD(NUMBER, member)
#define R(member) FIELD(REAL, member)
#define H(member) FIELD(HASH, member)
#define ARRAY(kind, member) \
  { #member, kind, offsetof(ROW, member), sizeof((ROW *)0)->member, sizeof *((ROW *)0)->member }
#define VARIANT(member) N(member.family), ARRAY(NUMBER, member.values)
#define BYTES(member)                                                                                                \
  N(member.one), N(member.rows), N(member.nnz), N(member.n), N(member.blocks), N(member.rows_n), N(member.blocks_n), \
      N(member.cols_n)

/* Of each row the members without pointers to other rows; the first one is no NAME. Nothing is stale among tables, so
 * no compilers and drivers are written. */
#define ROW wlmi_exported_family
static const field of_family[] = {T(name), T(parameter), T(value), {.name = NULL}};
#undef ROW
#define ROW wlmi_pass
static const field of_pass[] = {
    N(when),       ARRAY(NAME, kernel), N(units),   N(axis),         N(units_per_block), N(columns_per_block),
    N(wave),       N(processors),       N(threads), N(shared_bytes), N(dependent),       N(nonzeros_per_unit),
    {.name = NULL}};
#undef ROW
#define ROW wlmi_measured
static const field of_measured[] = {T(variant), T(reason), R(cost),   R(spread),  R(prepare),
                                    N(count),   N(failed), N(online), N(precise), {.name = NULL}};
#undef ROW
#define ROW wlm_stats
static const field of_stats[] = {N(size),       N(rows),       N(cols), N(nnz), N(longest),   N(empty_rows),
                                 N(rows_le_4),  N(rows_le_16), R(mean), R(cv),  R(top_share), ARRAY(HASH, fingerprint),
                                 {.name = NULL}};
#undef ROW
#define ROW wlmi_case
static const field of_case[] = {T(problem), T(matrix), N(n), N(count), N(failed), {.name = NULL}};
#undef ROW
#define ROW wlmi_pin_record
static const field of_pin[] = {T(device_class), T(target), T(problem), N(n), T(variant), {.name = NULL}};
#undef ROW
#define ROW wlmi_model_record
static const field of_model[] = {T(name), N(size), {.name = NULL}};
#undef ROW
#define ROW wlmi_exported_class
static const field of_class[] = {
    T(name),       T(device.name), T(device.kind), T(device.arch), N(device.processors), N(device.memory_bytes),
    N(case_count), N(pin_count),   N(model_count), {.name = NULL}};
#undef ROW
#define ROW wlmi_exported_candidate
static const field of_candidate[] = {VARIANT(value), N(launches), N(prepares),   N(whole_rows),
                                     N(walks_a),     N(pass),     {.name = NULL}};
#undef ROW
#define ROW wlmi_exported_problem
static const field of_problem[] = {H(spec.high), H(spec.low), N(candidate_count), N(general), {.name = NULL}};
#undef ROW
#define ROW wlmi_exported_kernel
static const field of_kernel[] = {
    H(spec.high), H(spec.low), VARIANT(variant),      N(helper),        N(pass_count),   N(deterministic),
    N(uses_b),    N(walks_a),  ARRAY(NUMBER, passes), BYTES(workspace), BYTES(prepared), T(name),
    T(split),     N(image),    {.name = NULL}};
#undef ROW
#define ROW wlmi_exported_target
static const field of_target[] = {N(target), N(arch), N(is_ptx), N(problem_count), N(kernel_count), {.name = NULL}};
#undef ROW

static void put_string(wlmi_text *out, const char *text) {
  wlmi_text_puts(out, "\"");
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    wlmi_text_printf(out, *c < ' ' || *c > '~' || strchr("\"\\?", *c) ? "\\%03o" : "%c", *c);
  wlmi_text_puts(out, "\"");
}

static int64_t number_at(const char *at, size_t size) {
  switch (size) {
    case sizeof(uint8_t): return *(const uint8_t *)at;
    case sizeof(uint16_t): return *(const uint16_t *)at;
    case sizeof(int): return *(const int *)at;
    default: return *(const int64_t *)at;
  }
}

static void put_element(wlmi_text *out, const field *f, const char *at) {
  switch (f->kind) {
    case TEXT: put_string(out, *(char *const *)at); break;
    case NAME: put_string(out, at); break;
    case REAL: wlmi_text_printf(out, "%a", *(const double *)at); break;
    case HASH: wlmi_text_printf(out, "0x%016jx", *(const uint64_t *)at); break;
    case NUMBER: wlmi_text_integer(out, number_at(at, f->element)); break;
  }
}

static int is_zero(const char *bytes, size_t size) {
  while (size && !bytes[size - 1]) size--;
  return !size;
}

/* The first member is written even if it is 0. The caller closes the row. */
static void open_row(wlmi_text *out, const field *fields, const void *row) {
  wlmi_text_puts(out, "    {");
  for (const field *f = fields; f->name; f++) {
    const char *at = (const char *)row + f->offset;
    const int is_array = f->kind != NAME && f->size > f->element;
    if (f != fields && is_zero(at, f->size)) continue;
    wlmi_text_printf(out, f == fields ? ".%s = " : ", .%s = ", f->name);
    if (is_array) wlmi_text_puts(out, "{");
    for (size_t i = 0; i < (is_array ? f->size : 1); i += f->element) {
      if (i) wlmi_text_puts(out, ", ");
      put_element(out, f, at + i);
    }
    if (is_array) wlmi_text_puts(out, "}");
  }
}

static void put_row(wlmi_text *out, const field *fields, const void *row) {
  open_row(out, fields, row);
  wlmi_text_puts(out, "},\n");
}

static void put_rows(wlmi_text *out, const field *fields, const void *rows, int64_t count, size_t size) {
  for (int64_t i = 0; i < count; i++) put_row(out, fields, (const char *)rows + (size_t)i * size);
}

/* With a row of zeros, because no array is empty. */
static void close_table(wlmi_text *out, const field *fields) {
  wlmi_text_printf(out, "    {.%s = 0}};\n\n", fields->name);
}

/* ---- tables --------------------------------------------------------------------------------------------- */

static int64_t put_families(wlmi_text *out, const wlmi_families *families) {
  int64_t count = 0;
  wlmi_text_puts(out, "static const wlmi_exported_family families[] = {\n");
  for (int f = 0; f < families->count; f++, count++) {
    const wlmi_family *family = &families->list[f];
    wlmi_exported_family row = {family->name, NULL, NULL};
    put_row(out, of_family, &row);
    for (int p = 0; p < family->parameter_count; p++)
      for (int v = 0; v < family->parameters[p].value_count; v++, count++) {
        row = (wlmi_exported_family){family->name, family->parameters[p].name, family->parameters[p].values[v]};
        put_row(out, of_family, &row);
      }
  }
  close_table(out, of_family);
  return count;
}

static void put_cases(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  int64_t first = 0;
  wlmi_text_printf(out, "static const wlmi_measured measured_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->case_count; i++)
    put_rows(out, of_measured, c->cases[i].candidates, c->cases[i].count + c->cases[i].failed, sizeof(wlmi_measured));
  close_table(out, of_measured);
  wlmi_text_printf(out, "static const wlm_stats stats_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->case_count; i++) put_row(out, of_stats, c->cases[i].stats);
  close_table(out, of_stats);
  wlmi_text_printf(out, "static const wlmi_case cases_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->case_count; i++) {
    open_row(out, of_case, &c->cases[i]);
    wlmi_text_printf(out, ", .stats = &stats_%jd[%jd], .candidates = &measured_%jd[%jd]},\n", index, i, index, first);
    first += c->cases[i].count + c->cases[i].failed;
  }
  close_table(out, of_case);
}

static void put_models(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  for (int64_t i = 0; i < c->model_count; i++) {
    wlmi_text_printf(out, "static const unsigned char model_%jd_%jd[] = {", index, i);
    for (size_t k = 0; k < c->models[i].size; k++)
      wlmi_text_printf(out, "%s%d,", k % 32 ? "" : "\n    ", ((const unsigned char *)c->models[i].data)[k]);
    wlmi_text_puts(out, "\n};\n\n");
  }
  wlmi_text_printf(out, "static const wlmi_model_record models_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->model_count; i++) {
    open_row(out, of_model, &c->models[i]);
    wlmi_text_printf(out, ", .data = (void *)model_%jd_%jd},\n", index, i);
  }
  close_table(out, of_model);
}

static void put_classes(wlmi_text *out, const wlmi_exported *tables) {
  for (int64_t i = 0; i < tables->class_count; i++) {
    const wlmi_exported_class *c = &tables->classes[i];
    put_cases(out, c, i);
    wlmi_text_printf(out, "static const wlmi_pin_record pins_%jd[] = {\n", i);
    put_rows(out, of_pin, c->pins, c->pin_count, sizeof *c->pins);
    close_table(out, of_pin);
    put_models(out, c, i);
  }
  wlmi_text_puts(out, "static const wlmi_exported_class classes[] = {\n");
  for (int64_t i = 0; i < tables->class_count; i++) {
    open_row(out, of_class, &tables->classes[i]);
    wlmi_text_printf(out, ", .cases = cases_%jd, .pins = pins_%jd, .models = models_%jd},\n", i, i, i);
  }
  close_table(out, of_class);
}

/* ---- kernels -------------------------------------------------------------------------------------------- */

static int is_host(const wlmi_exported_source *source) { return source->limits.target == WLMI_TARGET_HOST; }

static void put_images(wlmi_text *out, const wlmi_exported_source *sources, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const wlmi_program *p = &sources[i].program;
    if (!is_host(&sources[i])) {
      wlmi_text_printf(out, "extern const unsigned char wlmi_image_%jd[];\n", i);
      continue;
    }
    for (int k = 0; k < p->pass_count; k++)
      wlmi_text_printf(out, "extern void wlmi_host_%jd_%s(void);\n", i, p->passes[k].kernel);
    wlmi_text_printf(out, "static const wlmi_exported_function wlmi_image_%jd[] = {", i);
    for (int k = 0; k < p->pass_count; k++)
      wlmi_text_printf(out, "{\"%s\", wlmi_host_%jd_%s}, ", p->passes[k].kernel, i, p->passes[k].kernel);
    wlmi_text_puts(out, "{0}};\n");
  }
  wlmi_text_puts(out, "\nstatic const wlmi_exported_image images[] = {\n");
  for (int64_t i = 0; i < count; i++) wlmi_text_printf(out, "    {wlmi_image_%jd, %zu},\n", i, sources[i].size);
  wlmi_text_puts(out, "    {0}};\n\n");
}

static void put_target(wlmi_text *out, const wlmi_exported_target *t, int64_t index) {
  for (int64_t i = 0; i < t->problem_count; i++) {
    const wlmi_exported_problem *p = &t->problems[i];
    wlmi_text_printf(out, "static const wlmi_exported_candidate candidates_%jd_%jd[] = {\n", index, i);
    put_rows(out, of_candidate, p->candidates, p->candidate_count, sizeof *p->candidates);
    close_table(out, of_candidate);
  }
  wlmi_text_printf(out, "static const wlmi_exported_problem problems_%jd[] = {\n", index);
  for (int64_t i = 0; i < t->problem_count; i++) {
    open_row(out, of_problem, &t->problems[i]);
    wlmi_text_printf(out, ", .candidates = candidates_%jd_%jd},\n", index, i);
  }
  close_table(out, of_problem);
  wlmi_text_printf(out, "static const wlmi_exported_kernel kernels_%jd[] = {\n", index);
  put_rows(out, of_kernel, t->kernels, t->kernel_count, sizeof *t->kernels);
  close_table(out, of_kernel);
}

static void put_targets(wlmi_text *out, const wlmi_exported *tables) {
  for (int64_t i = 0; i < tables->target_count; i++) put_target(out, &tables->targets[i], i);
  wlmi_text_puts(out, "static const wlmi_exported_target targets[] = {\n");
  for (int64_t i = 0; i < tables->target_count; i++) {
    open_row(out, of_target, &tables->targets[i]);
    wlmi_text_printf(out, ", .problems = problems_%jd, .kernels = kernels_%jd},\n", i, i);
  }
  close_table(out, of_target);
}

/* Kernels of one name in several files get different symbols, which no shared library exports. */
static wlm_status write_host_kernel(const char *folder, const wlmi_program *p, int64_t index) {
  static const char *const unused[] = {"function", "parameter", "variable"}; /* a kernel has parts for all problems */
  wlmi_text text = {0};
  char name[64];
  wlmi_text_printf(&text, "/* %s */\n", p->variant);
  for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
    wlmi_text_printf(&text, "#pragma GCC diagnostic ignored \"-Wunused-%s\"\n", unused[i]);
  for (int i = 0; i < p->pass_count; i++) {
    const char *kernel = p->passes[i].kernel;
    wlmi_text_printf(&text, "#define %s wlmi_host_%jd_%s\n__asm__(\".hidden wlmi_host_%jd_%s\");\n", kernel, index,
                     kernel, index, kernel);
  }
  wlmi_text_puts(&text, p->source);
  snprintf(name, sizeof name, "host/%jd.c", (intmax_t)index);
  return wlmi_exported_text(folder, name, &text);
}

static wlm_status write_kernels(const wlmi_exported_source *sources, int64_t count, const char *folder,
                                wlmi_text *objects) {
  wlmi_text assembly = {0};
  char name[64];
  wlm_status status = WLM_OK;
  wlmi_text_puts(&assembly, "\t.section .rodata\n");
  for (int64_t i = 0; i < count; i++) {
    if (is_host(&sources[i])) {
      WLM_TRY(write_host_kernel(folder, &sources[i].program, i));
      wlmi_text_printf(objects, " host/%jd.o", i);
      continue;
    }
    snprintf(name, sizeof name, "kernels/%jd.%s", (intmax_t)i, sources[i].is_ptx ? "ptx" : "cubin");
    WLM_TRY(wlmi_exported_file(folder, name, sources[i].data, sources[i].size));
    wlmi_text_printf(
        &assembly,
        "\t.balign 16\n\t.global wlmi_image_%jd\n\t.hidden wlmi_image_%jd\nwlmi_image_%jd:\n\t.incbin \"%s\"\n", i, i,
        i, name);
  }
  wlmi_text_puts(&assembly, "\t.section .note.GNU-stack,\"\",@progbits\n");
  status = wlmi_exported_text(folder, "kernels.S", &assembly);
done:
  wlmi_text_release(&assembly);
  return status;
}

wlm_status wlmi_exported_write(const wlmi_exported *tables, const wlmi_families *families,
                               const wlmi_exported_source *sources, int64_t source_count, const char *folder,
                               wlmi_text *objects) {
  wlmi_text text = {0};
  WLM_CHECK(write_kernels(sources, source_count, folder, objects));
  wlmi_text_printf(&text, "%s\n#include \"exported/tables.h\"\n\n", wlmi_exported_by);
  const int64_t family_count = put_families(&text, families);
  wlmi_text_puts(&text, "static const wlmi_pass passes[] = {\n");
  put_rows(&text, of_pass, tables->passes, tables->pass_count, sizeof *tables->passes);
  close_table(&text, of_pass);
  put_classes(&text, tables);
  put_images(&text, sources, source_count);
  put_targets(&text, tables);
  wlmi_text_printf(&text,
                   "const wlmi_exported wlmi_exported_tables = {%d, families, %jd, passes, %jd, images, classes, %jd, "
                   "targets, %jd};\n",
                   wlm_version(), family_count, tables->pass_count, tables->class_count, tables->target_count);
  return wlmi_exported_text(folder, "tables.c", &text);
}
