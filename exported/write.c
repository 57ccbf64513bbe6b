#include "exported/write.h"

#include <errno.h>
#include <stdarg.h>
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

/* The members of structs in their order, braces around those of a struct within: texts (s, or - where it is left out;
 * c in place), integers (q, i, H, B by size), doubles (d), hashes (h), pointers to rows of another table (p), and a
 * struct that is left out (z). A digit says how many. Nothing is stale among tables, so measurements have no
 * version, compiler and driver. */
static const char of_family[] = "3s", of_pass[] = "c3i4qiqiq", of_measured[] = "{B{8B}}s3-s3dq3i",
                  of_stats[] = "8q3d{2h}", of_case[] = "sqpsp2qz-", of_pin[] = "3sqs", of_model[] = "sqpq",
                  of_class[] = "s{3siq}pqpqpq", of_candidate[] = "{B{8B}}4BH", of_problem[] = "{2h}p2q",
                  of_kernel[] = "{2h}{B{8B}}5B{6H}{8q}{8q}2sq", of_target[] = "3ipqpq", of_all[] = "ipqpqppqpq";
_Static_assert(WLMI_PARAMETERS == 8 && WLMI_MAX_PASSES == 6 && sizeof(wlmi_bytes) == 8 * sizeof(int64_t), "layouts");

static void put_string(wlmi_text *out, const char *text) {
  if (!text) return wlmi_text_puts(out, "0");
  wlmi_text_puts(out, "\"");
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    wlmi_text_printf(out, *c < ' ' || *c > '~' || strchr("\"\\?", *c) ? "\\%03o" : "%c", *c);
  wlmi_text_puts(out, "\"");
}

/* Puts a member and returns its size. `more`: of p the name and the number of a table and the row in it, of z its size.
 */
static size_t put_member(wlmi_text *out, char letter, const void *at, va_list *more) {
  switch (letter) {
    case 's': return put_string(out, *(char *const *)at), sizeof(char *);
    case '-': return wlmi_text_puts(out, "0"), sizeof(char *);
    case 'c': return put_string(out, at), sizeof((wlmi_pass *)0)->kernel;
    case 'q': return wlmi_text_integer(out, *(const int64_t *)at), sizeof(int64_t);
    case 'i': return wlmi_text_integer(out, *(const int *)at), sizeof(int);
    case 'H': return wlmi_text_integer(out, *(const uint16_t *)at), sizeof(uint16_t);
    case 'B': return wlmi_text_integer(out, *(const uint8_t *)at), sizeof(uint8_t);
    case 'd': return wlmi_text_printf(out, "%a", *(const double *)at), sizeof(double);
    case 'h': return wlmi_text_printf(out, "0x%016jx", *(const uint64_t *)at), sizeof(uint64_t);
    case 'z': return wlmi_text_puts(out, "{{0}}"), va_arg(*more, size_t);
    default: break;
  }
  const char *name = va_arg(*more, const char *);
  const int64_t table = va_arg(*more, int64_t), row = va_arg(*more, int64_t);
  if (name)
    wlmi_text_printf(out, "(void *)&%s_%jd[%jd]", name, table, row);
  else
    wlmi_text_puts(out, "0");
  return sizeof(void *);
}

static void put_row(wlmi_text *out, const void *row, const char *layout, ...) {
  const char *at = row;
  va_list more;
  va_start(more, layout);
  wlmi_text_puts(out, out->size && out->data[out->size - 1] == '}' ? ",\n    {" : "    {"); /* behind another row */
  for (const char *l = layout; *l; l++) {
    int count = *l > '0' && *l <= '9' ? *l++ - '0' : 1;
    if (*l == '{' || *l == '}') {
      wlmi_text_puts(out, *l == '{' ? "{" : "}, ");
      continue;
    }
    const size_t aligned = strchr("Bc", *l) ? 1 : *l == 'H' ? 2 : strchr("iz", *l) ? 4 : 8;
    while (count--) {
      at += -(uintptr_t)at % aligned;
      at += put_member(out, *l, at, &more);
      wlmi_text_puts(out, ", ");
    }
  }
  va_end(more);
  wlmi_text_puts(out, "}");
}

/* One without rows is left out, because C has no such array. */
static void open_table(wlmi_text *out, const char *type, const char *name, int64_t index, int64_t count) {
  if (count) wlmi_text_printf(out, "static const %s %s_%jd[] = {\n", type, name, index);
}

static void close_table(wlmi_text *out, int64_t count) {
  if (count) wlmi_text_puts(out, "\n};\n\n");
}

static const char *name_of(const char *table, int64_t count) { return count ? table : NULL; }

/* Rows without pointers to other rows. */
static void put_rows(wlmi_text *out, const void *rows, int64_t count, size_t size, const char *layout) {
  for (int64_t i = 0; i < count; i++) put_row(out, (const char *)rows + (size_t)i * size, layout);
}

/* ---- tables --------------------------------------------------------------------------------------------- */

/* A family, then the values of its parameters. Returns the number of rows. */
static int64_t put_families(wlmi_text *out, const wlmi_families *families) {
  int64_t count = families->count;
  open_table(out, "wlmi_exported_family", "families", 0, count);
  for (int f = 0; f < families->count; f++) {
    const wlmi_family *family = &families->list[f];
    wlmi_exported_family row = {.name = family->name};
    put_row(out, &row, of_family);
    for (int p = 0; p < family->parameter_count; p++)
      for (int v = 0; v < family->parameters[p].value_count; v++, count++) {
        row.parameter = family->parameters[p].name;
        row.value = family->parameters[p].values[v];
        put_row(out, &row, of_family);
      }
  }
  close_table(out, count);
  return count;
}

static void put_cases(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  int64_t measured = 0;
  for (int64_t i = 0; i < c->case_count; i++) measured += c->cases[i].count + c->cases[i].failed;
  open_table(out, "wlmi_measured", "measured", index, measured);
  for (int64_t i = 0; i < c->case_count; i++)
    put_rows(out, c->cases[i].candidates, c->cases[i].count + c->cases[i].failed, sizeof(wlmi_measured), of_measured);
  close_table(out, measured);
  open_table(out, "wlm_stats", "stats", index, c->case_count);
  for (int64_t i = 0; i < c->case_count; i++) put_row(out, c->cases[i].stats, of_stats);
  close_table(out, c->case_count);
  open_table(out, "wlmi_case", "cases", index, c->case_count);
  measured = 0;
  for (int64_t i = 0; i < c->case_count; i++) {
    put_row(out, &c->cases[i], of_case, "stats", index, i, "measured", index, measured, sizeof c->cases[i].point);
    measured += c->cases[i].count + c->cases[i].failed;
  }
  close_table(out, c->case_count);
}

/* The bytes of all models are one table. */
static void put_models(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  int64_t size = 0;
  for (int64_t i = 0; i < c->model_count; i++) size += (int64_t)c->models[i].size;
  open_table(out, "unsigned char", "bytes", index, size);
  for (int64_t i = 0; i < c->model_count; i++)
    for (size_t k = 0; k < c->models[i].size; k++)
      wlmi_text_printf(out, "%d,%s", ((const unsigned char *)c->models[i].data)[k], k % 32 == 31 ? "\n" : "");
  close_table(out, size);
  open_table(out, "wlmi_model_record", "models", index, c->model_count);
  size = 0;
  for (int64_t i = 0; i < c->model_count; i++) {
    put_row(out, &c->models[i], of_model, "bytes", index, size);
    size += (int64_t)c->models[i].size;
  }
  close_table(out, c->model_count);
}

static void put_classes(wlmi_text *out, const wlmi_exported *tables) {
  const int64_t none = 0;
  for (int64_t i = 0; i < tables->class_count; i++) {
    const wlmi_exported_class *c = &tables->classes[i];
    put_cases(out, c, i);
    open_table(out, "wlmi_pin_record", "pins", i, c->pin_count);
    put_rows(out, c->pins, c->pin_count, sizeof *c->pins, of_pin);
    close_table(out, c->pin_count);
    put_models(out, c, i);
  }
  open_table(out, "wlmi_exported_class", "classes", 0, tables->class_count);
  for (int64_t i = 0; i < tables->class_count; i++) {
    const wlmi_exported_class *c = &tables->classes[i];
    put_row(out, c, of_class, name_of("cases", c->case_count), i, none, name_of("pins", c->pin_count), i, none,
            name_of("models", c->model_count), i, none);
  }
  close_table(out, tables->class_count);
}

/* The candidates of all problems are one table. */
static void put_target(wlmi_text *out, const wlmi_exported_target *t, int64_t index) {
  int64_t candidates = 0;
  for (int64_t i = 0; i < t->problem_count; i++) candidates += t->problems[i].candidate_count;
  open_table(out, "wlmi_exported_candidate", "candidates", index, candidates);
  for (int64_t i = 0; i < t->problem_count; i++)
    put_rows(out, t->problems[i].candidates, t->problems[i].candidate_count, sizeof(wlmi_exported_candidate),
             of_candidate);
  close_table(out, candidates);
  open_table(out, "wlmi_exported_problem", "problems", index, t->problem_count);
  candidates = 0;
  for (int64_t i = 0; i < t->problem_count; i++) {
    put_row(out, &t->problems[i], of_problem, "candidates", index, candidates);
    candidates += t->problems[i].candidate_count;
  }
  close_table(out, t->problem_count);
  open_table(out, "wlmi_exported_kernel", "kernels", index, t->kernel_count);
  put_rows(out, t->kernels, t->kernel_count, sizeof *t->kernels, of_kernel);
  close_table(out, t->kernel_count);
}

static void put_targets(wlmi_text *out, const wlmi_exported *tables) {
  const int64_t none = 0;
  for (int64_t i = 0; i < tables->target_count; i++) put_target(out, &tables->targets[i], i);
  open_table(out, "wlmi_exported_target", "targets", 0, tables->target_count);
  for (int64_t i = 0; i < tables->target_count; i++) {
    const wlmi_exported_target *t = &tables->targets[i];
    put_row(out, t, of_target, name_of("problems", t->problem_count), i, none, name_of("kernels", t->kernel_count), i,
            none);
  }
  close_table(out, tables->target_count);
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
  open_table(out, "wlmi_exported_image", "images", 0, count);
  for (int64_t i = 0; i < count; i++) wlmi_text_printf(out, "    {wlmi_image_%jd, %zu},\n", i, sources[i].size);
  close_table(out, count);
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
  wlmi_exported all = *tables;
  wlmi_text text = {0};
  const int64_t none = 0;
  WLM_CHECK(write_kernels(sources, source_count, folder, objects));
  wlmi_text_printf(&text, "%s\n#include \"exported/tables.h\"\n\n", wlmi_exported_by);
  all.version = wlm_version();
  all.family_count = put_families(&text, families);
  open_table(&text, "wlmi_pass", "passes", 0, all.pass_count);
  put_rows(&text, all.passes, all.pass_count, sizeof *all.passes, of_pass);
  close_table(&text, all.pass_count);
  put_classes(&text, &all);
  put_images(&text, sources, source_count);
  put_targets(&text, &all);
  wlmi_text_puts(&text, "const wlmi_exported wlmi_exported_tables =\n");
  put_row(&text, &all, of_all, name_of("families", all.family_count), none, none, name_of("passes", all.pass_count),
          none, none, name_of("images", source_count), none, none, name_of("classes", all.class_count), none, none,
          name_of("targets", all.target_count), none, none);
  wlmi_text_puts(&text, ";\n");
  return wlmi_exported_text(folder, "tables.c", &text);
}
