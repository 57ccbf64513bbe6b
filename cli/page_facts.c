/* Writes facts about the database, the device, and the compilers and drivers of measurements. */
#include "cli/page_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

void wlmi_page_put_escaped(wlmi_text *out, const char *text) {
  static const struct {
    char letter;
    const char *entity;
  } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  for (; text && *text; text++) {
    size_t i = 0;
    while (i < sizeof entities / sizeof *entities && entities[i].letter != *text) i++;
    if (i < sizeof entities / sizeof *entities)
      wlmi_text_puts(out, entities[i].entity);
    else
      wlmi_text_append(out, text, 1);
  }
}

const char *wlmi_page_date(int64_t seconds, char text[WLM_PAGE_DATE]) {
  struct tm utc;
  const time_t when = (time_t)seconds;
  if (!gmtime_r(&when, &utc) || !strftime(text, WLM_PAGE_DATE, "%Y-%m-%d %H:%M UTC", &utc))
    snprintf(text, WLM_PAGE_DATE, "?");
  return text;
}

static void put_fact(wlmi_text *out, const char *name, const char *value) {
  wlmi_text_printf(out, "<div><dt>%s</dt><dd>", name);
  wlmi_page_put_escaped(out, value);
  wlmi_text_puts(out, "</dd></div>\n");
}

/* ---- the head -------------------------------------------------------------------------------------------- */

typedef struct counts {
  int64_t failed, cold, first, last;
} counts;

static counts count_records(const wlmi_class *of) {
  counts c = {0, 0, INT64_MAX, 0};
  for (int64_t i = 0; i < of->count; i++) {
    const wlmi_measurement_record *r = &of->records[i];
    c.failed += r->failed != 0;
    c.cold += wlmi_measurement_is_cold(r);
    if (r->made_at < c.first) c.first = r->made_at;
    if (r->made_at > c.last) c.last = r->made_at;
  }
  return c;
}

static int compare_fingerprints(const void *left, const void *right) {
  return memcmp(left, right, sizeof(((wlm_stats *)0)->fingerprint));
}

static wlm_status count_matrices(const wlmi_overview *overview, int64_t *count) {
  enum { SIZE = sizeof(((wlm_stats *)0)->fingerprint) };
  char(*prints)[SIZE];
  wlm_status status = wlmi_alloc_array(overview->case_count, SIZE, "matrices", (void **)&prints);
  *count = 0;
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < overview->case_count; i++)
    memcpy(prints[i], overview->cases[i].choice->stats->fingerprint, SIZE);
  qsort(prints, (size_t)overview->case_count, SIZE, compare_fingerprints);
  for (int64_t i = 0; i < overview->case_count; i++) *count += !i || memcmp(prints[i], prints[i - 1], SIZE);
  wlmi_free(prints);
  return WLM_OK;
}

static wlm_status put_device(const wlmi_page *page, wlmi_text *out) {
  const wlmi_overview *overview = page->overview;
  const wlmi_device_record *device = &overview->of->records->device;
  const counts c = count_records(overview->of);
  char text[512], first[WLM_PAGE_DATE], last[WLM_PAGE_DATE];
  int64_t matrices;
  wlm_status status = count_matrices(overview, &matrices);
  put_fact(out, "device class", overview->of->name);
  snprintf(text, sizeof text, "%s, %s, %d processors, %.1f GiB", device->kind, device->arch, device->processors,
           (double)device->memory_bytes / (double)(1 << 30));
  put_fact(out, "device", text);
  snprintf(text, sizeof text, "%lld (%lld failed, %lld with a cold cache)", (long long)overview->of->count,
           (long long)c.failed, (long long)c.cold);
  put_fact(out, "measurements", text);
  snprintf(text, sizeof text, "matrices: %lld, problems: %lld, cases: %lld", (long long)matrices,
           (long long)overview->problem_count, (long long)overview->case_count);
  put_fact(out, "covers", text);
  snprintf(text, sizeof text, "%s to %s", wlmi_page_date(c.first, first), wlmi_page_date(c.last, last));
  put_fact(out, "made", text);
  snprintf(text, sizeof text, "%lld", (long long)page->pin_count);
  put_fact(out, "pins", text);
  put_fact(out, "model", page->trained_at ? wlmi_page_date(page->trained_at, first) : "none");
  return status;
}

wlm_status wlmi_page_put_facts(const wlmi_page *page, wlmi_text *out) {
  char text[64];
  wlmi_text others = {0};
  wlm_status status = page->overview ? put_device(page, out) : WLM_OK;
  put_fact(out, "database", page->database);
  snprintf(text, sizeof text, "%.2f MiB", (double)page->database_bytes / (1 << 20));
  put_fact(out, "size of the file", text);
  for (int64_t i = 0; i < page->class_count; i++)
    if (!page->overview || &page->classes[i] != page->overview->of)
      wlmi_text_printf(&others, "%s%s (%lld)", others.size ? ", " : "", page->classes[i].name,
                       (long long)page->classes[i].count);
  if (others.size) put_fact(out, "other device classes (measurements), --device NAME", others.data);
  out->failed |= others.failed;
  wlmi_text_release(&others);
  return status;
}

/* ---- validity ---------------------------------------------------------------------------------------------- */

static int compare_clocks(const void *left, const void *right) {
  const wlmi_measurement_record *a = *(const wlmi_measurement_record *const *)left;
  const wlmi_measurement_record *b = *(const wlmi_measurement_record *const *)right;
  int order = strcmp(a->compiler ? a->compiler : "", b->compiler ? b->compiler : "");
  if (!order) order = strcmp(a->driver ? a->driver : "", b->driver ? b->driver : "");
  return order ? order : (a->made_at > b->made_at) - (a->made_at < b->made_at);
}

static int same_clock(const wlmi_measurement_record *a, const wlmi_measurement_record *b) {
  return !strcmp(a->compiler ? a->compiler : "", b->compiler ? b->compiler : "") &&
         !strcmp(a->driver ? a->driver : "", b->driver ? b->driver : "");
}

wlm_status wlmi_page_put_clocks(const wlmi_class *of, wlmi_text *out) {
  const wlmi_measurement_record **order;
  wlm_status status = wlmi_alloc_array(of->count, sizeof *order, "measurements", (void **)&order);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < of->count; i++) order[i] = &of->records[i];
  qsort(order, (size_t)of->count, sizeof *order, compare_clocks);
  for (int64_t begin = 0, end; begin < of->count; begin = end) {
    char first[WLM_PAGE_DATE], last[WLM_PAGE_DATE];
    for (end = begin; end < of->count && same_clock(order[begin], order[end]);) end++;
    wlmi_text_puts(out, "<tr><td>");
    wlmi_page_put_escaped(out, order[begin]->compiler);
    wlmi_text_puts(out, "</td><td>");
    wlmi_page_put_escaped(out, order[begin]->driver);
    wlmi_text_printf(out, "</td><td class=\"number\">%lld</td><td>%s</td><td>%s</td></tr>\n", (long long)(end - begin),
                     wlmi_page_date(order[begin]->made_at, first), wlmi_page_date(order[end - 1]->made_at, last));
  }
  wlmi_free(order);
  return WLM_OK;
}
