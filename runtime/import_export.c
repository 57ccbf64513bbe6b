/* Export and import of a context's user database. */
#include "core/problem/structs.h"
#include "core/records/lines.h"
#include "db/interchange.h"
#include "runtime/context_state.h"

static wlm_status need_database(const wlm_context *context) {
  if (*context->database) return WLM_OK;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "this context has no user database; give wlm_context_options.database");
}

static wlm_status open_user(const wlm_context *context, wlm_store **store) {
  const wlm_status status = need_database(context);
  return status == WLM_OK ? wlmi_store_open(context->database, WLMI_STORE_READ, store) : status;
}

wlm_status wlm_export_string(wlm_context *context, char **text) {
  wlm_store *store = NULL;
  wlmi_text out = {0};
  if (text) *text = NULL;
  WLM_CHECK(wlmi_need("wlm_export_string", "context text", context, text));
  wlm_status status = open_user(context, &store);
  if (status == WLM_OK) status = wlmi_store_export(store, &out);
  if (status == WLM_OK) status = wlmi_text_take(&out, text);
  wlmi_text_release(&out);
  wlmi_store_close(store);
  return wlmi_finish(status);
}

wlm_status wlm_export_path(wlm_context *context, const char *path) {
  wlm_store *store = NULL;
  wlm_status status = wlmi_need("wlm_export_path", "context path", context, path);
  if (status == WLM_OK) status = open_user(context, &store);
  if (status == WLM_OK) status = wlmi_store_export_path(store, path);
  wlmi_store_close(store);
  return wlmi_finish(status);
}

/* Imports the file, or the text if path is NULL. */
static wlm_status import_from(wlm_context *context, const char *path, const char *text, int64_t *added) {
  wlmi_content content;
  wlm_store *store = NULL;
  if (added) *added = 0;
  WLM_CHECK(need_database(context));
  WLM_CHECK(path ? wlmi_lines_read_path(path, &content) : wlmi_lines_read_string(text, "the given text", &content));
  wlm_status status = wlmi_store_open(context->database, WLMI_STORE_WRITE, &store);
  if (status == WLM_OK) status = wlmi_store_import(store, &content, added);
  wlmi_content_release(&content);
  wlmi_store_close(store);
  return status == WLM_OK ? wlm_context_refresh(context) : status;
}

wlm_status wlm_import_path(wlm_context *context, const char *path, int64_t *added) {
  const wlm_status status = wlmi_need("wlm_import_path", "context path", context, path);
  return status == WLM_OK ? import_from(context, path, NULL, added) : status;
}

wlm_status wlm_import_string(wlm_context *context, const char *text, int64_t *added) {
  const wlm_status status = wlmi_need("wlm_import_string", "context text", context, text);
  return status == WLM_OK ? import_from(context, NULL, text, added) : status;
}
