/* Writes the folder of an exported library: tables and kernels (exported/write.h), headers, libwarploom-run.a and a
 * Makefile. */
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
  return wlmi_exported_text(folder, "Makefile", &text);
}

/* Whether the folder has tables.c of an earlier export. */
static int is_export(const char *folder) {
  char line[64] = "";
  wlmi_text path = {0};
  wlmi_text_printf(&path, "%s/tables.c", folder);
  FILE *file = path.failed ? NULL : fopen(path.data, "re");
  if (file) {
    if (!fgets(line, sizeof line, file)) *line = 0;
    line[strcspn(line, "\n")] = 0;
    fclose(file);
  }
  wlmi_text_release(&path);
  return !strcmp(line, wlmi_exported_by);
}

static int is_empty(DIR *folder) {
  for (const struct dirent *entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return 0;
  return 1;
}

wlm_status wlmi_export_folder(const char *folder) {
  DIR *found = mkdir(folder, 0777) && errno != EEXIST ? NULL : opendir(folder);
  if (!found) return wlmi_fail(WLM_ERR_IO, "%s: %s; name a folder with -o", folder, strerror(errno));
  const int is_ours = is_empty(found) || is_export(folder);
  closedir(found);
  if (!is_ours)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "%s: has files that are no export, which might be replaced; name a new or empty folder", folder);
  return access(folder, W_OK | X_OK) ? wlmi_fail(WLM_ERR_IO, "%s: %s", folder, strerror(errno)) : WLM_OK;
}

wlm_status wlmi_export_write(const wlmi_export *e, const char *folder) {
  wlmi_exported_target targets[WLMI_EXPORT_TARGETS];
  const wlmi_exported tables = {.passes = e->passes,
                                .pass_count = e->pass_count,
                                .classes = e->classes,
                                .class_count = e->class_count,
                                .targets = targets,
                                .target_count = e->target_count};
  wlmi_text objects = {0}, name = {0};
  wlm_status status;
  for (int i = 0; i < e->target_count; i++) {
    const wlmi_export_target *t = &e->targets[i];
    targets[i] = (wlmi_exported_target){t->limits.target, t->limits.arch, t->is_ptx,      t->problems,
                                        t->problem_count, t->kernels,     t->kernel_count};
  }
  for (int i = 0; i < wlmi_export_headers_count; i++) {
    const struct wlmi_archive_file *h = &wlmi_export_headers[i];
    wlmi_text_release(&name);
    wlmi_text_printf(&name, "%s%s", strncmp(h->name, "include/", 8) ? "internal/" : "", h->name);
    if (name.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "name of a header"));
    WLM_TRY(wlmi_exported_file(folder, name.data, h->begin, (size_t)(h->end - h->begin)));
  }
  WLM_TRY(wlmi_exported_file(folder, "lib/libwarploom-run.a", wlmi_run_library,
                             (size_t)(wlmi_run_library_end - wlmi_run_library)));
  WLM_TRY(
      wlmi_exported_write(&tables, wlmi_generator_families(e->generator), e->images, e->image_count, folder, &objects));
  status = write_makefile(folder, objects.data ? objects.data : "");
done:
  wlmi_text_release(&objects);
  wlmi_text_release(&name);
  return status;
}
