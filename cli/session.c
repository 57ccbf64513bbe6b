#include "cli/session.h"

#include <string.h>

#include "common/bucket.h"
#include "common/element.h"
#include "common/hash.h"
#include "common/memory.h"
#include "matrix/input.h"

/* Multiples of 1/8 from -1 to 1, for the widest N that was asked for. */
static wlm_status make_bias(const wlm_cli_options *options, wlm_session *session) {
  wlm_device *device = wlm_context_device(session->context);
  const wlm_type type = options->problem.dense_type;
  const size_t size = wlm_type_size(type);
  void *values = NULL;
  int64_t count = 1;
  wlm_status status;
  for (int i = 0; i < options->n_count; i++)
    if (options->n[i] > count) count = options->n[i];
  WLM_TRY(wlm_alloc_array(count, size, "bias", &values));
  for (int64_t j = 0; j < count; j++) wlm_element_put(type, values, j, (double)(j * 7 % 17 - 8) / 8);
  WLM_TRY(device->ops->allocate(device, (size_t)count * size, &session->bias));
  WLM_TRY(device->ops->copy_in(device, session->bias, values, (size_t)count * size));
  session->problem.bias = session->bias;
done:
  wlm_free(values);
  return status;
}

wlm_status wlm_session_open(const wlm_cli_options *options, wlm_session *session) {
  wlm_context_options context = WLM_CONTEXT_OPTIONS_INIT;
  context.device = options->device;
  context.database = options->database;
  context.record = options->record;
  *session = (wlm_session){
      .problem = options->problem, .rowptr_type = options->rowptr_type, .colind_type = options->colind_type};
  wlm_status status = wlm_context_create(&context, &session->context);
  return status == WLM_OK && options->bias ? make_bias(options, session) : status;
}

static void unload(wlm_session *session) {
  wlm_upload_release(&session->upload);
  wlm_csr_host_release(&session->csr);
}

wlm_status wlm_session_load(wlm_session *session, const char *input) {
  wlm_status status;
  unload(session);
  WLM_TRY(wlm_input_read(input, &session->csr));
  const wlm_index fits = wlm_upload_rowptr_type(&session->csr);
  const wlm_index rowptr_type = session->rowptr_type == WLM_I64 ? WLM_I64 : fits;
  WLM_TRY(wlm_upload_create_typed(session->context, &session->csr, rowptr_type, session->colind_type,
                                  session->problem.dense_type, session->problem.heads, &session->upload));
  session->matrix = session->upload.matrix;
done:
  return status;
}

void wlm_session_close(wlm_session *session) {
  unload(session);
  if (session->bias) {
    wlm_device *device = wlm_context_device(session->context);
    device->ops->release(device, session->bias);
  }
  wlm_context_destroy(session->context);
  *session = (wlm_session){0};
}

void wlm_input_label(const char *input, char *label, size_t size) {
  const char *slash = strchr(input, ':') ? NULL : strrchr(input, '/');
  const char *endings[] = {".gz", ".mtx"};
  snprintf(label, size, "%s", slash ? slash + 1 : input);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t length = strlen(label), cut = strlen(endings[i]);
    if (length > cut && !strcmp(label + length - cut, endings[i])) label[length - cut] = 0;
  }
}

int wlm_cli_failed(wlm_status status) {
  const char *detail = wlm_error_detail();
  fprintf(stderr, "warploom: %s\n", *detail ? detail : wlm_status_message(status));
  return status == WLM_ERR_NO_COMPILER ? WLM_EXIT_USAGE : WLM_EXIT_FAILED;
}

int wlm_cli_finish(wlm_report *report, wlm_status status) {
  int written = wlm_report_flush(report);
  wlm_report_release(report);
  if (status != WLM_OK) return wlm_cli_failed(status);
  return written ? WLM_EXIT_OK : WLM_EXIT_FAILED;
}

void wlm_report_device(wlm_report *report, const wlm_context *context) {
  const wlm_device_info *info = &wlm_context_device(context)->info;
  if (report->json) {
    wlm_report_string(report, "device", info->name);
    wlm_report_string(report, "device_kind", info->kind);
    wlm_report_string(report, "device_arch", info->arch);
  } else {
    wlm_report_line(report, "%-12s %s (%s, %s)", "device", info->name, info->kind, info->arch);
  }
}

void wlm_report_stats(wlm_report *report, const wlm_stats *stats) {
  char hex[WLM_HASH_HEX], text[WLM_BUCKET_TEXT];
  wlm_bucket bucket;
  wlm_bucket_of(stats, &bucket);
  wlm_hash_to_hex((wlm_hash){stats->fingerprint[0], stats->fingerprint[1]}, hex);
  wlm_bucket_print(&bucket, text);
  wlm_report_integer(report, "rows", stats->rows);
  wlm_report_integer(report, "cols", stats->cols);
  wlm_report_integer(report, "nnz", stats->nnz);
  wlm_report_real(report, "mean", "%.3f", stats->mean);
  wlm_report_real(report, "cv", "%.3f", stats->cv);
  wlm_report_integer(report, "longest", stats->longest);
  wlm_report_real(report, "top_share", "%.3f", stats->top_share);
  wlm_report_integer(report, "empty_rows", stats->empty_rows);
  wlm_report_integer(report, "rows_le_4", stats->rows_le_4);
  wlm_report_integer(report, "rows_le_16", stats->rows_le_16);
  wlm_report_string(report, "bucket", text);
  wlm_report_string(report, "fingerprint", hex);
}
