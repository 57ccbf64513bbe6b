/* Writes an exported library as C: tables.c, a file for each host kernel, the GPUs' kernels as binary files that
 * kernels.S includes, headers, libwarploom-run.a and a Makefile. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/export.h"
#include "core/base/file.h"
#include "generator/archive.h"
#include "runtime/host/compiler.h"

/* The headers of the tables, and libwarploom-run.a; the build embeds both. */
extern const struct wlmi_archive_file wlmi_export_headers[];
extern const int wlmi_export_headers_count;
extern const char wlmi_run_library[], wlmi_run_library_end[];

static const char written_by[] = "/* Written by warploom export --format c. */"; /* the first line of tables.c */

/* ---- files ---------------------------------------------------------------------------------------------- */

static wlm_status make_folder(const char *path) {
  if (!mkdir(path, 0777) || errno == EEXIST) return WLM_OK;
  return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Makes the folders of `name` below `folder`. */
static wlm_status write_file(const char *folder, const char *name, const void *data, size_t size) {
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

static wlm_status write_text(const char *folder, const char *name, wlmi_text *text) {
  const wlm_status status = text->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "text of %s", name)
                                         : write_file(folder, name, text->data ? text->data : "", text->size);
  wlmi_text_release(text);
  return status;
}

/* ---- values --------------------------------------------------------------------------------------------- */

static void put_string(wlmi_text *out, const char *text) {
  wlmi_text_puts(out, "\"");
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    wlmi_text_printf(out, *c < ' ' || *c > '~' || strchr("\"\\?", *c) ? "\\%03o" : "%c", *c);
  wlmi_text_puts(out, "\"");
}

static void put_variant(wlmi_text *out, const wlmi_variant *v) {
  wlmi_text_printf(out, "{%d, {", v->family);
  for (int i = 0; i < WLMI_PARAMETERS; i++) wlmi_text_printf(out, "%s%d", i ? ", " : "", v->values[i]);
  wlmi_text_puts(out, "}}");
}

static void put_bytes(wlmi_text *out, const wlmi_bytes *b) {
  wlmi_text_printf(out, "{%jd, %jd, %jd, %jd, %jd, %jd, %jd, %jd}", b->one, b->rows, b->nnz, b->n, b->blocks, b->rows_n,
                   b->blocks_n, b->cols_n);
}

static void put_hash(wlmi_text *out, wlmi_hash hash) {
  wlmi_text_printf(out, "{0x%016jx, 0x%016jx}", hash.high, hash.low);
}

/* ---- tables --------------------------------------------------------------------------------------------- */

static void put_families(wlmi_text *out, const wlmi_families *families, int64_t *count) {
  *count = 0;
  wlmi_text_puts(out, "static const wlmi_exported_family families[] = {\n");
  for (int f = 0; f < families->count; f++) {
    const wlmi_family *family = &families->list[f];
    wlmi_text_printf(out, "    {\"%s\", NULL, NULL},\n", family->name);
    ++*count;
    for (int p = 0; p < family->parameter_count; p++)
      for (int v = 0; v < family->parameters[p].value_count; v++, ++*count)
        wlmi_text_printf(out, "    {\"%s\", \"%s\", \"%s\"},\n", family->name, family->parameters[p].name,
                         family->parameters[p].values[v]);
  }
  wlmi_text_puts(out, "};\n\n");
}

static void put_passes(wlmi_text *out, const wlmi_export *e) {
  wlmi_text_puts(out, "static const wlmi_pass passes[] = {\n");
  for (int64_t i = 0; i < e->pass_count; i++) {
    const wlmi_pass *p = &e->passes[i];
    wlmi_text_printf(out, "    {\"%s\", %d, %d, %d, %jd, %jd, %jd, %jd, %d, %jd, %d, %jd},\n", p->kernel, (int)p->when,
                     (int)p->units, (int)p->axis, p->units_per_block, p->columns_per_block, p->wave, p->processors,
                     p->threads, p->shared_bytes, p->dependent, p->nonzeros_per_unit);
  }
  wlmi_text_puts(out, "};\n\n");
}

/* Nothing is stale in an exported library, so no compilers and drivers are written. */
static void put_measured(wlmi_text *out, const wlmi_measured *m) {
  wlmi_text_puts(out, "    {.variant = ");
  put_string(out, m->variant);
  if (m->reason && *m->reason) {
    wlmi_text_puts(out, ", .reason = ");
    put_string(out, m->reason);
  }
  wlmi_text_printf(out, ", .cost = %a, .spread = %a, .prepare = %a, .count = %jd, ", m->cost, m->spread, m->prepare,
                   m->count);
  wlmi_text_printf(out, ".failed = %d, .online = %d, .precise = %d},\n", m->failed, m->online, m->precise);
}

static void put_cases(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  wlmi_text_printf(out, "static const wlmi_measured measured_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->case_count; i++)
    for (int64_t k = 0; k < c->cases[i].count + c->cases[i].failed; k++) put_measured(out, &c->cases[i].candidates[k]);
  wlmi_text_printf(out, "    {.count = 0}};\n\nstatic const wlm_stats stats_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->case_count; i++) {
    const wlm_stats *s = c->cases[i].stats;
    wlmi_text_printf(out,
                     "    {sizeof(wlm_stats), %jd, %jd, %jd, %jd, %jd, %jd, %jd, %a, %a, %a, {0x%016jx, 0x%016jx}},\n",
                     s->rows, s->cols, s->nnz, s->longest, s->empty_rows, s->rows_le_4, s->rows_le_16, s->mean, s->cv,
                     s->top_share, s->fingerprint[0], s->fingerprint[1]);
  }
  wlmi_text_printf(out, "    {0}};\n\nstatic const wlmi_case cases_%jd[] = {\n", index);
  int64_t first = 0;
  for (int64_t i = 0; i < c->case_count; i++) {
    const wlmi_case *of = &c->cases[i];
    wlmi_text_puts(out, "    {.problem = ");
    put_string(out, of->problem);
    wlmi_text_puts(out, ", .matrix = ");
    put_string(out, of->matrix);
    wlmi_text_printf(out, ", .n = %jd, .stats = &stats_%jd[%jd], .candidates = &measured_%jd[%jd], .count = %jd, ",
                     of->n, index, i, index, first, of->count);
    wlmi_text_printf(out, ".failed = %jd},\n", of->failed);
    first += of->count + of->failed;
  }
  wlmi_text_puts(out, "    {.n = 0}};\n\n");
}

static void put_pins(wlmi_text *out, const wlmi_exported_class *c, int64_t index) {
  wlmi_text_printf(out, "static const wlmi_pin_record pins_%jd[] = {\n", index);
  for (int64_t i = 0; i < c->pin_count; i++) {
    const char *const fields[] = {c->pins[i].device_class, c->pins[i].target, c->pins[i].problem};
    wlmi_text_puts(out, "    {");
    for (int k = 0; k < 3; k++) {
      put_string(out, fields[k]);
      wlmi_text_puts(out, ", ");
    }
    wlmi_text_printf(out, "%jd, ", c->pins[i].n);
    put_string(out, c->pins[i].variant);
    wlmi_text_puts(out, "},\n");
  }
  wlmi_text_puts(out, "    {0}};\n\n");
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
    wlmi_text_puts(out, "    {.name = ");
    put_string(out, c->models[i].name);
    wlmi_text_printf(out, ", .data = (void *)model_%jd_%jd, .size = %zu},\n", index, i, c->models[i].size);
  }
  wlmi_text_puts(out, "    {0}};\n\n");
}

static void put_classes(wlmi_text *out, const wlmi_export *e) {
  for (int64_t i = 0; i < e->class_count; i++) {
    put_cases(out, &e->classes[i], i);
    put_pins(out, &e->classes[i], i);
    put_models(out, &e->classes[i], i);
  }
  wlmi_text_puts(out, "static const wlmi_exported_class classes[] = {\n");
  for (int64_t i = 0; i < e->class_count; i++) {
    const wlmi_exported_class *c = &e->classes[i];
    const char *const names[] = {c->name, c->device.name, c->device.kind, c->device.arch};
    wlmi_text_puts(out, "    {");
    for (int k = 0; k < 4; k++) {
      put_string(out, names[k]);
      wlmi_text_puts(out, k ? ", " : ", {");
    }
    wlmi_text_printf(out, "%d, %jd}, cases_%jd, %jd, pins_%jd, %jd, models_%jd, %jd},\n", c->device.processors,
                     c->device.memory_bytes, i, c->case_count, i, c->pin_count, i, c->model_count);
  }
  wlmi_text_puts(out, "    {0}};\n\n");
}

/* ---- kernels -------------------------------------------------------------------------------------------- */

static int is_host(const wlmi_export_image *image) { return image->limits.target == WLMI_TARGET_HOST; }

/* Declares what the rows of kernels point to. */
static void put_images(wlmi_text *out, const wlmi_export *e) {
  for (int64_t i = 0; i < e->image_count; i++) {
    const wlmi_program *p = &e->images[i].program;
    if (!is_host(&e->images[i])) {
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
  wlmi_text_puts(out, "\n");
}

static void put_kernel(wlmi_text *out, const wlmi_export *e, const wlmi_exported_kernel *k, int64_t image) {
  wlmi_text_puts(out, "    {");
  put_hash(out, k->spec);
  wlmi_text_puts(out, ", ");
  put_variant(out, &k->variant);
  wlmi_text_printf(out, ", %d, %d, %d, %d, %d, {", k->helper, k->pass_count, k->deterministic, k->uses_b, k->walks_a);
  for (int i = 0; i < WLMI_MAX_PASSES; i++) wlmi_text_printf(out, "%s%d", i ? ", " : "", k->passes[i]);
  wlmi_text_puts(out, "}, ");
  put_bytes(out, &k->workspace);
  wlmi_text_puts(out, ", ");
  put_bytes(out, &k->prepared);
  wlmi_text_printf(out, ", \"%s\", \"%s\", wlmi_image_%jd, %zu},\n", k->name, k->split, image, e->images[image].size);
}

static void put_target(wlmi_text *out, const wlmi_export *e, int index) {
  const wlmi_export_target *t = &e->targets[index];
  for (int64_t i = 0; i < t->problem_count; i++) {
    const wlmi_exported_problem *p = &t->problems[i];
    wlmi_text_printf(out, "static const wlmi_exported_candidate candidates_%d_%jd[] = {\n", index, i);
    for (int64_t k = 0; k < p->candidate_count; k++) {
      const wlmi_exported_candidate *c = &p->candidates[k];
      wlmi_text_puts(out, "    {");
      put_variant(out, &c->value);
      wlmi_text_printf(out, ", %d, %d, %d, %d, %d},\n", c->launches, c->prepares, c->whole_rows, c->walks_a, c->pass);
    }
    wlmi_text_puts(out, "};\n\n");
  }
  wlmi_text_printf(out, "static const wlmi_exported_problem problems_%d[] = {\n", index);
  for (int64_t i = 0; i < t->problem_count; i++) {
    const wlmi_exported_problem *p = &t->problems[i];
    const wlmi_export_problem *of = &e->problems[t->of[i]];
    wlmi_text_puts(out, "    {");
    put_hash(out, p->spec);
    wlmi_text_printf(out, ", candidates_%d_%jd, %jd, %jd}, /* n = %jd */\n", index, i, p->candidate_count, p->general,
                     of->n);
  }
  wlmi_text_printf(out, "    {.spec = {0, 0}}};\n\nstatic const wlmi_exported_kernel kernels_%d[] = {\n", index);
  for (int64_t i = 0; i < t->kernel_count; i++) put_kernel(out, e, &t->kernels[i], t->images[i]);
  wlmi_text_puts(out, "    {.spec = {0, 0}}};\n\n");
}

static void put_tables(wlmi_text *out, const wlmi_export *e) {
  int64_t family_count;
  wlmi_text_printf(out, "%s\n#include \"exported/tables.h\"\n\n", written_by);
  put_families(out, wlmi_generator_families(e->generator), &family_count);
  put_passes(out, e);
  put_classes(out, e);
  put_images(out, e);
  for (int t = 0; t < e->target_count; t++) put_target(out, e, t);
  wlmi_text_puts(out, "static const wlmi_exported_target targets[] = {\n");
  for (int t = 0; t < e->target_count; t++)
    wlmi_text_printf(out, "    {%d, %d, %d, problems_%d, %jd, kernels_%d, %jd},\n", (int)e->targets[t].limits.target,
                     e->targets[t].limits.arch, e->targets[t].is_ptx, t, e->targets[t].problem_count, t,
                     e->targets[t].kernel_count);
  wlmi_text_printf(out,
                   "};\n\nconst wlmi_exported wlmi_exported_tables = {%d, families, %jd, passes, "
                   "classes, %jd, targets, %d};\n",
                   wlm_version(), family_count, e->class_count, e->target_count);
}

/* ---- the folder ----------------------------------------------------------------------------------------- */

/* Kernels of one name in several files get different symbols. */
static wlm_status write_host_kernel(const char *folder, const wlmi_export_image *image, int64_t index) {
  static const char *const unused[] = {"function", "parameter", "variable"}; /* a kernel has parts for all problems */
  wlmi_text text = {0};
  char name[64];
  const wlmi_program *p = &image->program;
  wlmi_text_printf(&text, "/* %s */\n", p->variant);
  for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
    wlmi_text_printf(&text, "#pragma GCC diagnostic ignored \"-Wunused-%s\"\n", unused[i]);
  for (int i = 0; i < p->pass_count; i++)
    wlmi_text_printf(&text, "#define %s wlmi_host_%jd_%s\n", p->passes[i].kernel, index, p->passes[i].kernel);
  wlmi_text_puts(&text, p->source);
  snprintf(name, sizeof name, "host/%jd.c", (intmax_t)index);
  return write_text(folder, name, &text);
}

static wlm_status write_images(const wlmi_export *e, const char *folder, wlmi_text *objects) {
  wlmi_text assembly = {0};
  char name[64];
  wlm_status status = WLM_OK;
  wlmi_text_puts(&assembly, "\t.section .rodata\n");
  for (int64_t i = 0; i < e->image_count; i++) {
    const wlmi_export_image *image = &e->images[i];
    if (is_host(image)) {
      WLM_TRY(write_host_kernel(folder, image, i));
      wlmi_text_printf(objects, " host/%jd.o", i);
      continue;
    }
    snprintf(name, sizeof name, "kernels/%jd.%s", (intmax_t)i, image->is_ptx ? "ptx" : "cubin");
    WLM_TRY(write_file(folder, name, image->data, image->size));
    wlmi_text_printf(
        &assembly,
        "\t.balign 16\n\t.global wlmi_image_%jd\n\t.hidden wlmi_image_%jd\nwlmi_image_%jd:\n\t.incbin \"%s\"\n", i, i,
        i, name);
  }
  wlmi_text_puts(&assembly, "\t.section .note.GNU-stack,\"\",@progbits\n");
  status = write_text(folder, "kernels.S", &assembly);
done:
  wlmi_text_release(&assembly);
  return status;
}

static wlm_status write_makefile(const char *folder, const char *objects) {
  wlmi_text text = {0};
  wlmi_text_printf(&text,
                   "# Written by warploom export --format c. `make` builds libwarploom.a; link programs with\n"
                   "#   cc program.c -IDIR/include DIR/libwarploom.a -fopenmp -lm -ldl -lpthread\n"
                   "CFLAGS = -O2\n"
                   "# Other flags may give other bits than the full library.\n"
                   "HOST_FLAGS = %s\n"
                   "OBJECTS = tables.o kernels.o%s\n\n"
                   "libwarploom.a: $(OBJECTS) lib/libwarploom-run.a\n"
                   "\tcp lib/libwarploom-run.a $@.new\n"
                   "\t$(AR) rs $@.new $(OBJECTS)\n"
                   "\tmv $@.new $@\n\n"
                   "host/%%.o: host/%%.c\n"
                   "\t$(CC) $(HOST_FLAGS) -c -o $@ $<\n\n"
                   "tables.o: tables.c\n"
                   "\t$(CC) -std=c11 $(CFLAGS) -fPIC -Iinclude -Iinternal -c -o $@ $<\n\n"
                   "kernels.o: kernels.S\n"
                   "\t$(CC) -c -o $@ $<\n\n"
                   "clean:\n"
                   "\trm -f libwarploom.a $(OBJECTS)\n",
                   wlmi_host_flags, objects);
  return write_text(folder, "Makefile", &text);
}

/* Whether the folder has tables.c of an earlier export. */
static int is_export(const char *folder) {
  char line[sizeof written_by] = "";
  wlmi_text path = {0};
  wlmi_text_printf(&path, "%s/tables.c", folder);
  FILE *file = path.failed ? NULL : fopen(path.data, "re");
  if (file) {
    if (!fgets(line, sizeof line, file)) *line = 0;
    fclose(file);
  }
  wlmi_text_release(&path);
  return !strcmp(line, written_by);
}

static int is_empty(DIR *folder) {
  for (const struct dirent *entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return 0;
  return 1;
}

wlm_status wlmi_export_folder(const char *folder) {
  WLM_CHECK(make_folder(folder));
  DIR *found = opendir(folder);
  if (!found) return wlmi_fail(WLM_ERR_IO, "%s: %s; name a folder with -o", folder, strerror(errno));
  const int is_ours = is_empty(found) || is_export(folder);
  closedir(found);
  if (!is_ours)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "%s: has files that are no export, which might be replaced; name a new or empty folder", folder);
  return access(folder, W_OK | X_OK) ? wlmi_fail(WLM_ERR_IO, "%s: %s", folder, strerror(errno)) : WLM_OK;
}

wlm_status wlmi_export_write(const wlmi_export *e, const char *folder) {
  wlmi_text tables = {0}, objects = {0}, name = {0};
  wlm_status status;
  for (int i = 0; i < wlmi_export_headers_count; i++) {
    const struct wlmi_archive_file *h = &wlmi_export_headers[i];
    wlmi_text_release(&name);
    wlmi_text_printf(&name, "%s%s", strncmp(h->name, "include/", 8) ? "internal/" : "", h->name);
    if (name.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "name of a header"));
    WLM_TRY(write_file(folder, name.data, h->begin, (size_t)(h->end - h->begin)));
  }
  WLM_TRY(
      write_file(folder, "lib/libwarploom-run.a", wlmi_run_library, (size_t)(wlmi_run_library_end - wlmi_run_library)));
  WLM_TRY(write_images(e, folder, &objects));
  WLM_TRY(write_makefile(folder, objects.data ? objects.data : ""));
  put_tables(&tables, e);
  status = write_text(folder, "tables.c", &tables);
done:
  wlmi_text_release(&tables);
  wlmi_text_release(&objects);
  wlmi_text_release(&name);
  return status;
}
