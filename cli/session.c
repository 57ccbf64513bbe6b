#include "cli/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/left_out.h"
#include "cli/memory_need.h"
#include "cli/progress.h"
#include "core/base/hash.h"
#include "core/base/path.h"
#include "core/problem/bucket.h"
#include "runtime/context.h"
#include "runtime/shipped.h"

wlm_status wlmi_session_open(const wlmi_cli_options *options, wlmi_session *session) {
  wlm_context_options context = WLM_CONTEXT_OPTIONS_INIT;
  context.device = options->device;
  context.database = options->database;
  context.record = options->record;
  context.layers = options->layers;
  context.layer_count = options->layer_count;
  *session = (wlmi_session){.problem = options->problem, .args = options->args, .options = options};
  return wlm_context_create(&context, &session->context);
}

static void unload(wlmi_session *session) {
  wlmi_upload_release(&session->upload);
  wlmi_csr_host_release(&session->csr);
}

static wlmi_memory_need need_of(const wlmi_session *session, const char *input) {
  return (wlmi_memory_need){.options = session->options,
                            .input = input,
                            .problem = &session->problem,
                            .args = &session->args,
                            .n = session->multiplies ? wlmi_widest(session->options) : 0,
                            .on_host = wlmi_context_device(session->context)->info.limits.target == WLMI_TARGET_HOST};
}

wlm_status wlmi_session_check(const wlmi_session *session, const char *input) {
  const wlmi_memory_need need = need_of(session, input);
  return wlmi_input_check_fitting(&need);
}

wlm_status wlmi_session_load(wlmi_session *session, const char *input) {
  unload(session);
  const wlmi_memory_need need = need_of(session, input);
  WLM_CHECK(wlmi_input_read_fitting(&need, &session->csr));
  const wlm_index fits = wlmi_upload_rowptr_type(&session->csr);
  const wlm_index rowptr_type = session->options->rowptr_type == WLM_I64 ? WLM_I64 : fits;
  WLM_CHECK(wlmi_upload_create_typed(session->context, &session->csr, rowptr_type, session->options->colind_type,
                                     session->problem.dense_type, session->problem.heads, &session->upload));
  session->matrix = session->upload.matrix;
  return WLM_OK;
}

wlm_status wlmi_session_each(wlmi_session *session, const wlmi_cli_options *options, wlmi_report *report,
                             wlmi_session_input_fn *each) {
  wlmi_left_out left_out = {.count = 0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < options->argument_count && status == WLM_OK; i++) {
    const char *input = options->arguments[i];
    const wlm_status loaded = wlmi_session_load(session, input);
    status = loaded == WLM_OK ? each(session, input, options, report)
                              : wlmi_left_out_add(&left_out, options, input, loaded, report);
    if (status != WLM_OK) break; /* wlmi_cli_finish prints the report so far */
    while (report->depth) wlmi_report_close(report);
    if (!wlmi_report_flush(report)) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the result's text");
  }
  return wlmi_left_out_end(&left_out, options, status, report);
}

void wlmi_session_close(wlmi_session *session) {
  unload(session);
  wlm_context_destroy(session->context);
  *session = (wlmi_session){0};
}

void wlmi_input_label(const char *input, char *label, size_t size) {
  const char *slash = strchr(input, ':') ? NULL : strrchr(input, '/');
  const char *endings[] = {".gz", ".mtx", ".npz", ".txt", ".csv", ".tsv"};
  snprintf(label, size, "%s", !strcmp(input, "-") ? "stdin" : slash ? slash + 1 : input);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t length = strlen(label), cut = strlen(endings[i]);
    if (length > cut && !strcmp(label + length - cut, endings[i])) label[length - cut] = 0;
  }
}

wlm_status wlmi_cli_database_path(const wlmi_cli_options *options, wlmi_text *path) {
  if (!options->database) return wlmi_store_default_path(path);
  if (!*options->database)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--db '' means no database; name one, or leave the option out");
  wlmi_text_puts(path, options->database);
  return path->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of the database") : WLM_OK;
}

wlm_status wlmi_cli_check_system(const wlmi_cli_options *options) {
  if (!options->system || !options->database) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--system and --db name two databases; leave one out");
}

/* A fresh install has only the shipped database, so commands that show a database show that one. */
wlm_status wlmi_cli_open_to_show(const wlmi_cli_options *options, wlmi_text *path, wlm_store **store) {
  wlm_status status;
  *store = NULL;
  WLM_CHECK(wlmi_cli_check_system(options));
  if (options->system) {
    wlmi_system_database_path(path);
    if (!path->size)
      return wlmi_fail(WLM_ERR_NOT_FOUND, "the shipped database, share/warploom/system.db, is not there");
    return wlmi_store_open(path->data, WLMI_STORE_READ_SHIPPED, store);
  }
  status = wlmi_cli_open_store(options, WLMI_STORE_READ, path, store);
  if (status != WLM_ERR_NOT_FOUND || options->database) return status;
  wlmi_text_release(path);
  wlmi_system_database_path(path);
  return path->size ? wlmi_store_open(path->data, WLMI_STORE_READ_SHIPPED, store) : status;
}

wlm_status wlmi_cli_open_store(const wlmi_cli_options *options, wlmi_store_mode mode, wlmi_text *path,
                               wlm_store **store) {
  *store = NULL;
  wlm_status status = wlmi_cli_database_path(options, path);
  return status == WLM_OK ? wlmi_store_open(path->data, mode, store) : status;
}

wlm_status wlmi_cli_open_to_change(const wlmi_cli_options *options, wlmi_text *path, wlm_store **store) {
  *store = NULL;
  WLM_CHECK(wlmi_cli_database_path(options, path));
  if (access(path->data, F_OK) && errno == ENOENT)
    return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: no such file; 'warploom tune' makes it", path->data);
  return wlmi_store_open(path->data, WLMI_STORE_WRITE, store);
}

wlm_status wlmi_cli_generator(wlmi_generator **generator) {
  const char *folder = secure_getenv("WARPLOOM_TEMPLATES");
  return wlmi_generator_create(folder && *folder ? folder : NULL, generator);
}

int wlmi_cli_finish(wlmi_report *report, wlm_status status) {
  const int is_usage = status == WLM_ERR_NO_COMPILER || status == WLM_ERR_INVALID_ARGUMENT;
  if (status == WLM_ERR_INVALID_ARGUMENT && !report->flushed)
    wlmi_report_release(report); /* the report is still empty */
  while (report->depth) wlmi_report_close(report);
  const int written = wlmi_report_flush(report);
  wlmi_report_release(report);
  if (status == WLM_OK) return written ? WLMI_EXIT_OK : WLMI_EXIT_FAILED;
  wlmi_print_message("warploom: %s", *wlm_error_detail() ? wlm_error_detail() : wlm_status_message(status));
  if (report->exit_code) return report->exit_code;
  return is_usage ? WLMI_EXIT_USAGE : WLMI_EXIT_FAILED;
}

void wlmi_report_device(wlmi_report *report, const wlm_context *context) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  if (report->json) {
    wlmi_report_members(report, "device=%s device_kind=%s device_arch=%s", info->name, info->kind, info->arch);
  } else {
    wlmi_report_line(report, "%-12s %s (%s, %s)", "device", info->name, info->kind, info->arch);
  }
}

void wlmi_report_stats(wlmi_report *report, const wlm_stats *stats) {
  char hex[WLMI_HASH_HEX], text[WLMI_BUCKET_TEXT];
  wlmi_bucket bucket;
  wlmi_bucket_of(stats, &bucket);
  wlmi_hash_to_hex((wlmi_hash){stats->fingerprint[0], stats->fingerprint[1]}, hex);
  wlmi_bucket_print(&bucket, text);
  wlmi_report_members(report,
                      "rows=%jd cols=%jd nnz=%jd mean=%.3f cv=%.3f longest=%jd top_share=%.3f empty_rows=%jd "
                      "rows_le_4=%jd rows_le_16=%jd bucket=%s fingerprint=%s",
                      stats->rows, stats->cols, stats->nnz, stats->mean, stats->cv, stats->longest, stats->top_share,
                      stats->empty_rows, stats->rows_le_4, stats->rows_le_16, text, hex);
}
