#include "cli/page_pictures.h"

#include <stdio.h>

#include "cli/gnuplot.h"
#include "core/base/file.h"
#include "core/base/memory.h"

enum { FILE_PATH = WLM_TEMPORARY_NAME + 32 };

static void file_of(const wlmi_pictures *pictures, int64_t index, char path[FILE_PATH]) {
  snprintf(path, FILE_PATH, "%s/%lld.svg", pictures->temporary.folder, (long long)index);
}

wlm_status wlmi_pictures_open(wlmi_pictures *pictures, const wlmi_text *page, int width, int height) {
  char path[FILE_PATH];
  wlm_status status;
  if (!*pictures->temporary.folder) WLM_TRY(wlmi_gnuplot_folder(&pictures->temporary));
  WLM_TRY(wlmi_grow((void **)&pictures->places, pictures->count, &pictures->capacity, sizeof *pictures->places,
                    "pictures"));
  file_of(pictures, pictures->count, path);
  wlmi_text_printf(&pictures->script,
                   "reset\nset terminal svg size %d,%d dynamic noenhanced font 'sans-serif,12'\nset output ", width,
                   height);
  wlmi_gnuplot_quoted(&pictures->script, path, "");
  wlmi_text_puts(&pictures->script, "\n");
  pictures->places[pictures->count++] = page->size;
done:
  return status;
}

/* ---- into the page ------------------------------------------------------------------------------------ */

static void put_base64(wlmi_text *out, const unsigned char *data, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < size; i += 3) {
    const size_t left = size - i;
    const unsigned bits =
        (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) | (left > 2 ? (unsigned)data[i + 2] : 0);
    const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], left > 1 ? digits[bits >> 6 & 63] : '=',
                          left > 2 ? digits[bits & 63] : '='};
    wlmi_text_append(out, four, sizeof four);
  }
}

static wlm_status put_picture(const wlmi_pictures *pictures, int64_t index, wlmi_text *out) {
  char path[FILE_PATH], *svg;
  size_t size;
  file_of(pictures, index, path);
  wlm_status status = wlmi_file_read(path, &svg, &size);
  if (status != WLM_OK) return status;
  wlmi_text_puts(out, "data:image/svg+xml;base64,");
  put_base64(out, (const unsigned char *)svg, size);
  wlmi_free(svg);
  return WLM_OK;
}

wlm_status wlmi_pictures_finish(wlmi_pictures *pictures, const wlmi_text *page, wlmi_text *out) {
  size_t done_to = 0;
  wlm_status status = WLM_OK;
  if (page->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a page");
  if (pictures->count) {
    wlmi_text_puts(&pictures->script, "unset output\n");
    WLM_TRY(wlmi_gnuplot(&pictures->script));
  }
  for (int64_t i = 0; i < pictures->count; i++) {
    wlmi_text_append(out, page->data + done_to, pictures->places[i] - done_to);
    done_to = pictures->places[i];
    WLM_TRY(put_picture(pictures, i, out));
  }
  wlmi_text_append(out, page->data + done_to, page->size - done_to);
  if (out->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a page");
done:
  return status;
}

void wlmi_pictures_release(wlmi_pictures *pictures) {
  wlmi_temporary_close(&pictures->temporary);
  wlmi_text_release(&pictures->script);
  wlmi_free(pictures->places);
  *pictures = (wlmi_pictures){0};
}
