/* export and import: write and read measurements and pins as JSON lines, without a device; export --format c. */
#include <string.h>

#include "cli/commands.h"
#include "cli/export.h"
#include "cli/session.h"
#include "core/base/memory.h"
#include "core/records/lines.h"
#include "db/interchange.h"
#include "runtime/shipped.h"

/* ---- a library ---- */

/* The databases that a context reads: the user's, if there is one, and the shipped one. */
static wlm_status open_stores(const wlmi_cli_options *options, wlm_store *stores[2]) {
  wlmi_text path = {0}, shipped = {0};
  wlm_status status = wlmi_cli_check_system(options);
  if (status != WLM_OK) return status;
  if (!options->system) {
    status = wlmi_cli_open_store(options, WLMI_STORE_READ, &path, &stores[0]);
    if (status == WLM_ERR_NOT_FOUND && !options->database) status = WLM_OK;
    WLM_TRY(status);
  }
  wlmi_system_database_path(&shipped);
  if (shipped.size) status = wlmi_store_open(shipped.data, WLMI_STORE_READ_SHIPPED, &stores[1]);
done:
  wlmi_text_release(&path);
  wlmi_text_release(&shipped);
  return status;
}

static void put_problems(const wlmi_export *e, wlmi_report *report) {
  wlmi_table table;
  wlmi_table_begin(&table, "target,problem,n,candidates,kernels");
  for (int t = 0; t < e->target_count; t++) {
    const wlmi_export_target *target = &e->targets[t];
    for (int64_t i = 0; i < target->problem_count; i++) {
      const wlmi_exported_problem *p = &target->problems[i];
      int64_t kernels = 0;
      for (int64_t k = 0; k < target->kernel_count; k++)
        kernels += !memcmp(&target->kernels[k].spec, &p->spec, sizeof p->spec) && !target->kernels[k].helper;
      char name[32];
      wlmi_export_target_name(target, name);
      wlmi_table_add(&table, "%s %s %jd %jd %jd", name, e->problems[target->of[i]].name, e->problems[target->of[i]].n,
                     p->candidate_count, kernels);
    }
  }
  wlmi_report_table(report, "problems", &table, 0);
}

static void put_sizes(const wlmi_export *e, wlmi_report *report) {
  int64_t binaries = 0, sources = 0, host_kernels = 0, gpu_kernels = 0, measurements = 0, models = 0, choices = 0;
  for (int64_t i = 0; i < e->image_count; i++) {
    const int is_host = e->images[i].limits.target == WLMI_TARGET_HOST;
    host_kernels += is_host;
    gpu_kernels += !is_host;
    sources += is_host ? (int64_t)strlen(e->images[i].program.source) : 0;
    binaries += (int64_t)e->images[i].size;
  }
  for (int64_t i = 0; i < e->class_count; i++) {
    for (int64_t k = 0; k < e->classes[i].case_count; k++)
      measurements += e->classes[i].cases[k].count + e->classes[i].cases[k].failed;
    for (int64_t k = 0; k < e->classes[i].model_count; k++) models += (int64_t)e->classes[i].models[k].size;
  }
  for (int t = 0; t < e->target_count; t++) choices += e->targets[t].choices;
  wlmi_report_members(report,
                      "device_classes=%jd choices_covered=%jd gpu_kernels=%jd gpu_kernel_bytes=%jd host_kernels=%jd "
                      "host_source_bytes=%jd measurements=%jd measurement_bytes=%jd model_bytes=%jd",
                      e->class_count, choices, gpu_kernels, binaries, host_kernels, sources, measurements,
                      measurements * (int64_t)sizeof(wlmi_measured), models);
}

static wlm_status export_library(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_export *e = wlmi_alloc_zero(1, sizeof *e);
  if (!e) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "tables of the export");
  if (!options->archs)
    WLM_TRY(wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "export --format c needs --arch, as in --arch sm_80,sm_90,host"));
  if (!strcmp(options->output, "-"))
    WLM_TRY(wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "-o -: --format c writes a folder; name one"));
  WLM_TRY(wlmi_cli_generator(&e->generator));
  WLM_TRY(open_stores(options, e->stores));
  WLM_TRY(wlmi_export_gather(e, options->archs, options->parts));
  WLM_TRY(wlmi_export_folder(options->output));
  WLM_TRY(wlmi_export_cover(e));
  WLM_TRY(wlmi_export_write(e, options->output));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "folder", options->output);
  put_sizes(e, report);
  put_problems(e, report);
done:
  wlmi_export_release(e);
  wlmi_free(e);
  return status;
}

/* ---- JSON lines ---- */

wlm_status wlmi_cmd_export(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  if (options->format) return export_library(options, report);
  if (options->archs || options->parts)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--%s is for --format c", options->archs ? "arch" : "for");
  status = options->system ? wlmi_cli_open_to_show(options, &path, &store)
                           : wlmi_cli_open_store(options, WLMI_STORE_READ, &path, &store);
  if (status == WLM_ERR_NOT_FOUND && !options->database && !options->system)
    status = wlmi_fail(status, "%s: no such file; tune first, or export the shipped database with --system",
                       path.size ? path.data : "the user database");
  WLM_TRY(status);
  WLM_TRY(wlmi_store_count(store, &counts));
  if (!strcmp(options->output, "-")) {
    WLM_TRY(wlmi_store_export_file(store, stdout, "standard output"));
  } else {
    WLM_TRY(wlmi_store_export_path(store, options->output));
    wlmi_report_object(report, NULL);
    wlmi_report_members(report, "database=%s file=%s measurements=%jd", path.data, options->output,
                        counts.measurements);
  }
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}

wlm_status wlmi_cmd_import(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  wlmi_content content;
  int64_t added = 0;
  const char *from = options->arguments[0];
  /* before a database is made */
  WLM_CHECK(strcmp(from, "-") ? wlmi_lines_read_path(from, &content)
                              : wlmi_lines_read_file(stdin, "standard input", &content));
  WLM_TRY(wlmi_cli_open_store(options, WLMI_STORE_WRITE, &path, &store));
  WLM_TRY(wlmi_store_import(store, &content, &added));
  WLM_TRY(wlmi_store_count(store, &counts));
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s added=%jd measurements=%jd", path.data, added, counts.measurements);
done:
  wlmi_content_release(&content);
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
