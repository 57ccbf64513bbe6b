/* info: the devices, compilers and databases of this machine. stats: the statistics of a matrix. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/left_out.h"
#include "cli/memory_need.h"
#include "cli/session.h"
#include "core/base/path.h"
#include "core/csr/stats.h"
#include "db/store.h"
#include "runtime/devices.h"
#include "runtime/shipped.h"

static void add_device(wlmi_table *table, const char *name, wlmi_device *device) {
  const wlmi_device_info *info = &device->info;
  wlmi_table_add(table, "%s %s %s %d %.1f %s %s", name, info->name, info->arch, info->limits.processors,
                 (double)info->memory_bytes / (double)(1 << 30), info->driver,
                 *info->compiler ? info->compiler : "none");
  device->ops->close(device);
}

/* "cuda" means every GPU, NULL every device. */
static int is_wanted(const char *wanted, const char *name) {
  return !wanted || !strcmp(wanted, name) || (!strcmp(wanted, "cuda") && !strncmp(name, "cuda:", 5));
}

static wlm_status tell_devices(wlmi_report *report, const char *wanted) {
  wlmi_table table;
  wlmi_device *device;
  wlmi_table_begin(&table, "device,name,arch,processors,memory_gib=memory GiB,driver,compiler");
  char name[32];
  int count = 0;
  for (; wlmi_cuda_device_open(count, &device) == WLM_OK; count++) {
    snprintf(name, sizeof name, "cuda:%d", count);
    if (is_wanted(wanted, name))
      add_device(&table, name, device);
    else
      device->ops->close(device);
  }
  const char *why_no_cuda = count ? NULL : wlm_error_detail();
  if (why_no_cuda || report->json) wlmi_report_string(report, "no_cuda", why_no_cuda ? why_no_cuda : "");
  if (is_wanted(wanted, "host") && wlmi_host_device_open(&device) == WLM_OK) add_device(&table, "host", device);
  const int found = table.count > 0;
  wlmi_report_table(report, "devices", &table, 0);
  if (found || !wanted) return WLM_OK;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "--device %s: is not there; warploom info lists devices", wanted);
}

/* A database that does not exist yet is no error. */
static void report_database(wlmi_report *report, const char *path) {
  wlm_store *store = NULL;
  wlmi_store_counts counts = {0};
  wlmi_report_string(report, "database", path);
  wlm_status status = *path ? wlmi_store_open(path, WLMI_STORE_READ, &store) : WLM_ERR_NOT_FOUND;
  if (status == WLM_OK) status = wlmi_store_count(store, &counts);
  if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) wlmi_report_string(report, "database_fault", wlm_error_detail());
  wlmi_report_members(report, "measurements=%jd failed=%jd matrices=%jd", counts.measurements, counts.failed,
                      counts.matrices);
  wlmi_store_close(store);
}

wlm_status wlmi_cmd_info(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text database = {0}, shipped = {0}, cache = {0}, archive = {0};
  const char *templates = secure_getenv("WARPLOOM_TEMPLATES"), *kernels = secure_getenv("WARPLOOM_KERNELS");
  if (options->database)
    wlmi_text_puts(&database, options->database);
  else
    wlmi_store_default_path(&database);
  wlmi_kernel_cache_default_path(&cache);
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "version=%s templates=%s", wlm_version_string(),
                      templates && *templates ? templates : "embedded");
  report_database(report, database.data ? database.data : "");
  wlmi_system_database_path(&shipped);
  wlmi_report_members(report, "system_database=%s kernel_cache=%s", shipped.data ? shipped.data : "",
                      cache.data ? cache.data : "");
  if (kernels && *kernels)
    wlmi_text_puts(&archive, kernels);
  else
    wlmi_archive_shipped_path(&archive);
  wlmi_report_string(report, "kernel_archive", archive.data ? archive.data : "");
  const wlm_status status = tell_devices(report, options->device);
  wlmi_text_release(&database);
  wlmi_text_release(&shipped);
  wlmi_text_release(&cache);
  wlmi_text_release(&archive);
  return status;
}

static wlm_status report_stats(const wlmi_cli_options *options, const char *input, wlmi_report *report) {
  const wlmi_memory_need need = {.options = options, .input = input};
  wlm_status status;
  wlmi_csr_host csr = {0};
  wlm_stats stats = WLM_STATS_INIT;
  WLM_TRY(wlmi_input_read_fitting(&need, &csr));
  WLM_TRY(wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &stats));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "input", input);
  wlmi_report_stats(report, &stats);
  wlmi_report_flag(report, "values", csr.values != NULL);
  wlmi_report_close(report);
done:
  wlmi_csr_host_release(&csr);
  return status;
}

wlm_status wlmi_cmd_stats(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_left_out left_out = {.count = 0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < options->argument_count && status == WLM_OK; i++) {
    const char *input = options->arguments[i];
    status = report_stats(options, input, report);
    if (status != WLM_OK) status = wlmi_left_out_add(&left_out, options, input, status, report);
    if (!wlmi_report_flush(report)) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the result's text");
  }
  return wlmi_left_out_end(&left_out, options, status, report);
}
