/* info and stats: what is there. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "db/store.h"
#include "matrix/input.h"
#include "matrix/stats.h"
#include "runtime/context.h"
#include "runtime/devices.h"

static void add_device(wlm_table *table, const char *name, wlm_device *device) {
  const wlm_device_info *info = &device->info;
  wlm_table_text(table, name);
  wlm_table_text(table, info->name);
  wlm_table_text(table, info->arch);
  wlm_table_integer(table, info->limits.processors);
  wlm_table_real(table, "%.1f", (double)info->memory_bytes / (double)(1 << 30));
  wlm_table_text(table, info->driver);
  wlm_table_text(table, *info->compiler ? info->compiler : "none");
  device->ops->close(device);
}

/* "cuda" is every GPU; NULL is everything. */
static int is_wanted(const char *wanted, const char *name) {
  return !wanted || !strcmp(wanted, name) || (!strcmp(wanted, "cuda") && !strncmp(name, "cuda:", 5));
}

static wlm_status tell_devices(wlm_report *report, const char *wanted) {
  static const wlm_table_column columns[] = {
      {"device", "device"},         {"name", "name"},     {"arch", "arch"},        {"processors", "processors"},
      {"memory_gib", "memory GiB"}, {"driver", "driver"}, {"compiler", "compiler"}};
  wlm_table table;
  wlm_device *device;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  const char *why_no_cuda = "this build has no CUDA device";
#ifdef WLM_HAVE_CUDA
  char name[32];
  int count = 0;
  for (; wlm_cuda_device_open(count, &device) == WLM_OK; count++) {
    snprintf(name, sizeof name, "cuda:%d", count);
    if (is_wanted(wanted, name))
      add_device(&table, name, device);
    else
      device->ops->close(device);
  }
  why_no_cuda = count ? NULL : wlm_error_detail();
#endif
  if (why_no_cuda || report->json) wlm_report_string(report, "no_cuda", why_no_cuda ? why_no_cuda : "");
  if (is_wanted(wanted, "host") && wlm_host_device_open(&device) == WLM_OK) add_device(&table, "host", device);
  const int found = table.count > 0;
  wlm_report_table(report, "devices", &table);
  wlm_table_release(&table);
  if (found || !wanted) return WLM_OK;
  return wlm_fail(WLM_ERR_NOT_FOUND, "--device %s: is not there; warploom info lists devices", wanted);
}

/* A database that is not there yet is no fault. */
static void tell_database(wlm_report *report, const char *path) {
  wlm_store *store = NULL;
  wlm_store_counts counts = {0};
  wlm_report_string(report, "database", path);
  wlm_status status = *path ? wlm_store_open(path, WLM_STORE_READ, &store) : WLM_ERR_NOT_FOUND;
  if (status == WLM_OK) status = wlm_store_count(store, &counts);
  if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) wlm_report_string(report, "database_fault", wlm_error_detail());
  wlm_report_integer(report, "measurements", counts.measurements);
  wlm_report_integer(report, "failed", counts.failed);
  wlm_report_integer(report, "matrices", counts.matrices);
  wlm_store_close(store);
}

int wlm_cmd_info(const wlm_cli_options *options) {
  wlm_report report = {.json = options->json};
  wlm_text database = {0}, shipped = {0}, cache = {0};
  const char *templates = getenv("WARPLOOM_TEMPLATES");
  if (options->database)
    wlm_text_puts(&database, options->database);
  else
    wlm_store_default_path(&database);
  wlm_kernel_cache_default_path(&cache);
  wlm_report_object(&report, NULL);
  wlm_report_string(&report, "version", wlm_version_string());
  wlm_report_string(&report, "templates", templates && *templates ? templates : "embedded");
  tell_database(&report, database.data ? database.data : "");
  wlm_system_database_path(&shipped);
  wlm_report_string(&report, "system_database", shipped.data ? shipped.data : "");
  wlm_report_string(&report, "kernel_cache", cache.data ? cache.data : "");
  const wlm_status status = tell_devices(&report, options->device);
  wlm_report_close(&report);
  wlm_text_release(&database);
  wlm_text_release(&shipped);
  wlm_text_release(&cache);
  return wlm_cli_finish(&report, status);
}

int wlm_cmd_stats(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_csr_host csr = {0};
  wlm_stats stats = WLM_STATS_INIT;
  WLM_TRY(wlm_input_read(options->arguments[0], &csr));
  WLM_TRY(wlm_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &stats));
  wlm_report_object(&report, NULL);
  wlm_report_string(&report, "input", options->arguments[0]);
  wlm_report_stats(&report, &stats);
  wlm_report_flag(&report, "values", csr.values != NULL);
  wlm_report_close(&report);
done:
  wlm_csr_host_release(&csr);
  return wlm_cli_finish(&report, status);
}
