/* report: writes an HTML report of a database. It uses no device, so measurements of other machines can be reported. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/gnuplot.h"
#include "cli/page.h"
#include "cli/session.h"
#include "core/base/output.h"
#include "db/store.h"
#include "select/model.h"

/* "cuda:0" means any GPU, because the store does not number GPUs. */
static wlm_status choose_class(const wlmi_cli_options *options, const wlmi_class *classes, int64_t count,
                               const wlmi_class **chosen) {
  char part[256];
  snprintf(part, sizeof part, "%s", options->device ? options->device : "");
  part[strcspn(part, ":")] = 0;
  *chosen = NULL;
  for (int64_t i = 0; i < count; i++)
    if (strstr(classes[i].name, part) && (!*chosen || classes[i].count > (*chosen)->count)) *chosen = &classes[i];
  if (*chosen || !count) return WLM_OK;
  wlmi_text names = {0};
  for (int64_t i = 0; i < count; i++) wlmi_text_printf(&names, "%s%s", i ? ", " : "", classes[i].name);
  wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--device %s is part of no device class in the database: %s",
                                options->device, names.data ? names.data : "");
  wlmi_text_release(&names);
  return status;
}

/* Reads the newest model; it has the L2 size for which models of this class are trained. An unreadable one counts as
 * none. */
static wlm_status look_at_models(wlm_store *store, const char *device_class, int64_t *made_at, int64_t *l2_bytes) {
  wlmi_model_record *records = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_models(store, device_class, &records, &count);
  for (int64_t i = 0; i < count; i++) {
    wlmi_model model;
    if (records[i].made_at <= *made_at || wlmi_model_read(records[i].data, records[i].size, &model) != WLM_OK) continue;
    *made_at = records[i].made_at;
    *l2_bytes = model.limits.l2_bytes > 0 ? model.limits.l2_bytes : 1;
    wlmi_model_release(&model);
  }
  wlmi_model_records_free(records, count);
  return status;
}

static wlm_status make_page(const wlmi_cli_options *options, wlm_store *store, wlmi_page *page, wlmi_text *html) {
  wlmi_content content = {0};
  wlmi_class *classes = NULL;
  const wlmi_class *chosen = NULL;
  wlmi_overview overview = {0};
  int64_t l2_bytes = 0;
  wlm_status status;
  WLM_TRY(wlmi_content_load(store, &content));
  WLM_TRY(wlmi_classes_make(content.records, content.count, &classes, &page->class_count));
  WLM_TRY(choose_class(options, classes, page->class_count, &chosen));
  page->classes = classes;
  if (chosen) {
    WLM_TRY(wlmi_gnuplot_find());
    WLM_TRY(look_at_models(store, chosen->name, &page->trained_at, &l2_bytes));
    WLM_TRY(wlmi_overview_make(chosen, l2_bytes, &overview));
    for (int64_t i = 0; i < content.pin_count; i++)
      page->pin_count += !strcmp(content.pins[i].device_class, chosen->name);
    page->overview = &overview;
  }
  status = wlmi_page_make(page, html);
done:
  page->overview = NULL; /* it ends here */
  wlmi_overview_release(&overview);
  wlmi_classes_free(classes, page->class_count);
  wlmi_content_release(&content);
  return status;
}

static wlm_status deliver(const char *output, const wlmi_page *page, const wlmi_text *html, wlmi_report *report) {
  if (!strcmp(output, "-")) {
    if (fwrite(html->data, 1, html->size, stdout) == html->size) return WLM_OK;
    return wlmi_fail(WLM_ERR_IO, "standard output: cannot write: %s", strerror(errno));
  }
  wlm_status status = wlmi_output_write(output, html->data, html->size);
  if (status != WLM_OK) return status;
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", page->database);
  wlmi_report_string(report, "file", output);
  wlmi_report_integer(report, "bytes", (int64_t)html->size);
  wlmi_report_close(report);
  return WLM_OK;
}

wlm_status wlmi_cmd_report(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0}, html = {0};
  wlm_store *store = NULL;
  wlmi_page page = {0};
  struct stat info;
  wlm_status status;
  WLM_TRY(wlmi_cli_open_to_show(options, &path, &store));
  page.database = path.data;
  page.results = (const char *const *)options->arguments;
  page.result_count = options->argument_count;
  page.database_bytes = stat(path.data, &info) ? 0 : (int64_t)info.st_size;
  status = make_page(options, store, &page, &html);
  if (status == WLM_ERR_NOT_FOUND) report->exit_code = WLM_EXIT_USAGE; /* there is no gnuplot */
  if (status == WLM_OK) status = deliver(options->output, &page, &html, report);
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  wlmi_text_release(&html);
  return status;
}
