/* The page is files under cli/page/ with places of the form @{name}: a name with a dot is another of these files, any
 * other is a function here. What comes from the database is never looked at for places and is escaped where it is
 * put. */
#include "cli/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/page_draw.h"
#include "cli/page_json.h"
#include "cli/page_pictures.h"
#include "common/memory.h"
#include "generator/archive.h"

extern const struct wlm_archive_file wlm_page_files[];
extern const int wlm_page_files_count;

enum { MAX_PROBLEMS = 8, MAX_MAPS = 12, DATE = 32, FIGURE_WIDTH = 440, FIGURE_HEIGHT = 370 };

typedef struct state {
  const wlm_page *page;
  wlm_pictures pictures;
  wlm_draw_families families;
} state;

/* ---- words ---------------------------------------------------------------------------------------------- */

static void put_escaped(wlm_text *out, const char *text) {
  static const struct {
    char letter;
    const char *entity;
  } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  for (; text && *text; text++) {
    size_t i = 0;
    while (i < sizeof entities / sizeof *entities && entities[i].letter != *text) i++;
    if (i < sizeof entities / sizeof *entities)
      wlm_text_puts(out, entities[i].entity);
    else
      wlm_text_append(out, text, 1);
  }
}

static const char *date_of(int64_t seconds, char text[DATE]) {
  struct tm utc;
  const time_t when = (time_t)seconds;
  if (!gmtime_r(&when, &utc) || !strftime(text, DATE, "%Y-%m-%d %H:%M UTC", &utc)) snprintf(text, DATE, "?");
  return text;
}

static void put_fact(wlm_text *out, const char *name, const char *value) {
  wlm_text_printf(out, "<div><dt>%s</dt><dd>", name);
  put_escaped(out, value);
  wlm_text_puts(out, "</dd></div>\n");
}

/* ---- the head -------------------------------------------------------------------------------------------- */

static void put_title(state *s, wlm_text *out) {
  wlm_text_puts(out, "warploom: ");
  if (s->page->survey) wlm_text_puts(out, "what was measured on ");
  put_escaped(out, s->page->survey ? s->page->survey->of->records->device.name : "nothing measured");
}

typedef struct counts {
  int64_t failed, cold, first, last;
} counts;

static counts count_records(const wlm_class *of) {
  counts c = {0, 0, INT64_MAX, 0};
  for (int64_t i = 0; i < of->count; i++) {
    const wlm_measurement_record *r = &of->records[i];
    c.failed += r->failed != 0;
    c.cold += wlm_measurement_is_cold(r);
    if (r->made_at < c.first) c.first = r->made_at;
    if (r->made_at > c.last) c.last = r->made_at;
  }
  return c;
}

static int compare_fingerprints(const void *left, const void *right) {
  return memcmp(left, right, sizeof(((wlm_stats *)0)->fingerprint));
}

static wlm_status count_matrices(const wlm_survey *survey, int64_t *count) {
  enum { SIZE = sizeof(((wlm_stats *)0)->fingerprint) };
  char(*prints)[SIZE];
  wlm_status status = wlm_alloc_array(survey->case_count, SIZE, "matrices", (void **)&prints);
  *count = 0;
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < survey->case_count; i++) memcpy(prints[i], survey->cases[i].choice->stats->fingerprint, SIZE);
  qsort(prints, (size_t)survey->case_count, SIZE, compare_fingerprints);
  for (int64_t i = 0; i < survey->case_count; i++) *count += !i || memcmp(prints[i], prints[i - 1], SIZE);
  wlm_free(prints);
  return WLM_OK;
}

static wlm_status put_device(const state *s, wlm_text *out) {
  const wlm_survey *survey = s->page->survey;
  const wlm_device_record *device = &survey->of->records->device;
  const counts c = count_records(survey->of);
  char text[512], first[DATE], last[DATE];
  int64_t matrices;
  wlm_status status = count_matrices(survey, &matrices);
  put_fact(out, "device class", survey->of->name);
  snprintf(text, sizeof text, "%s, %s, %d processors, %.1f GiB", device->kind, device->arch, device->processors,
           (double)device->memory_bytes / (double)(1 << 30));
  put_fact(out, "device", text);
  snprintf(text, sizeof text, "%lld (%lld failed, %lld with a cold cache)", (long long)survey->of->count,
           (long long)c.failed, (long long)c.cold);
  put_fact(out, "measurements", text);
  snprintf(text, sizeof text, "matrices: %lld, problems: %lld, cases: %lld", (long long)matrices,
           (long long)survey->problem_count, (long long)survey->case_count);
  put_fact(out, "covers", text);
  snprintf(text, sizeof text, "%s to %s", date_of(c.first, first), date_of(c.last, last));
  put_fact(out, "made", text);
  snprintf(text, sizeof text, "%lld", (long long)s->page->pin_count);
  put_fact(out, "pins", text);
  put_fact(out, "model", s->page->trained_at ? date_of(s->page->trained_at, first) : "none");
  return status;
}

static wlm_status put_facts(state *s, wlm_text *out) {
  char text[64];
  wlm_text others = {0};
  wlm_status status = s->page->survey ? put_device(s, out) : WLM_OK;
  put_fact(out, "database", s->page->database);
  snprintf(text, sizeof text, "%.2f MiB", (double)s->page->database_bytes / (1 << 20));
  put_fact(out, "size of the file", text);
  for (int64_t i = 0; i < s->page->class_count; i++)
    if (!s->page->survey || &s->page->classes[i] != s->page->survey->of)
      wlm_text_printf(&others, "%s%s (%lld)", others.size ? ", " : "", s->page->classes[i].name,
                      (long long)s->page->classes[i].count);
  if (others.size) put_fact(out, "other device classes (measurements), --device NAME", others.data);
  out->failed |= others.failed;
  wlm_text_release(&others);
  return status;
}

/* ---- figures --------------------------------------------------------------------------------------------- */

/* The caller draws into the script of the pictures. `what` is for those who do not see it. */
static wlm_status put_figure(state *s, const char *what, const char *caption, wlm_text *out) {
  wlm_text_printf(out, "<figure><img width=\"%d\" height=\"%d\" alt=\"%s\" src=\"", FIGURE_WIDTH, FIGURE_HEIGHT, what);
  wlm_status status = wlm_pictures_open(&s->pictures, out, FIGURE_WIDTH, FIGURE_HEIGHT);
  wlm_text_printf(out, "\"><figcaption>%s</figcaption></figure>\n", caption);
  return status;
}

static wlm_status put_maps(state *s, const wlm_survey_problem *problem, wlm_text *out) {
  int maps = 0;
  wlm_status status = WLM_OK;
  for (int64_t begin = 0, end; begin < problem->count && maps < MAX_MAPS && status == WLM_OK; begin = end, maps++) {
    const int64_t n = problem->cases[begin].choice->n;
    char what[160], caption[80];
    for (end = begin; end < problem->count && problem->cases[end].choice->n == n;) end++;
    snprintf(what, sizeof what, "Map of the winning family of %lld matrices by non-zeros a row and skew, for N = %lld",
             (long long)(end - begin), (long long)n);
    snprintf(caption, sizeof caption, "<strong>N = %lld</strong>: who wins where", (long long)n);
    status = put_figure(s, what, caption, out);
    wlm_draw_map(s->page->survey, &s->families, problem->cases + begin, end - begin, &s->pictures.script);
  }
  return status;
}

static const char *const way_names[WLM_WAYS] = {"GE-SpMM", "one fixed", "rules", "unseen"};

static wlm_status put_distributions(state *s, const wlm_ratios ratios[WLM_WAYS], wlm_text *out) {
  static const struct {
    wlm_way ways[2];
    const char *what, *caption, *axis;
  } pictures[] = {{{WLM_WAY_GE_SPMM, WLM_WAY_FIXED},
                   "Cumulative distribution of the speed-up of the best candidate over fixed references",
                   "<strong>Speed-up</strong> of the best over fixed references",
                   "speed-up of the best"},
                  {{WLM_WAY_RULE, WLM_WAY_UNSEEN},
                   "Cumulative distribution of the time of what would be chosen over the best time",
                   "<strong>Regret</strong>: time of what would be chosen over the best",
                   "time over the best"}};
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    wlm_draw_curve curves[2];
    for (int k = 0; k < 2; k++)
      curves[k] = (wlm_draw_curve){way_names[pictures[i].ways[k]], &ratios[pictures[i].ways[k]]};
    wlm_status status = put_figure(s, pictures[i].what, pictures[i].caption, out);
    if (status != WLM_OK) return status;
    wlm_draw_curves(curves, 2, pictures[i].axis, &s->pictures.script);
  }
  return WLM_OK;
}

static void put_ways(const wlm_survey_problem *problem, const wlm_ratios ratios[WLM_WAYS], wlm_text *out) {
  wlm_text_puts(out,
                "<div class=\"scroll\"><table>\n<caption>Time over the best measured time</caption>\n<thead><tr>"
                "<th scope=\"col\">way</th><th scope=\"col\" class=\"number\">cases</th><th scope=\"col\" "
                "class=\"number\">geometric mean</th><th scope=\"col\" class=\"number\">median</th><th "
                "scope=\"col\" class=\"number\">worst</th><th scope=\"col\">where</th></tr></thead>\n<tbody>\n");
  for (int way = 0; way < WLM_WAYS; way++) {
    const wlm_ratios *r = &ratios[way];
    if (!r->count) continue;
    wlm_text_printf(out, "<tr><td>%s", way_names[way]);
    if (way == WLM_WAY_FIXED) {
      wlm_text_puts(out, ": ");
      put_escaped(out, problem->fixed);
    }
    wlm_text_printf(out,
                    "</td><td class=\"number\">%lld</td><td class=\"number\">%.3fx</td><td class=\"number\">%.3fx</td>"
                    "<td class=\"number\">%.2fx</td><td>",
                    (long long)r->count, r->mean, r->sorted[r->count / 2], r->sorted[r->count - 1]);
    put_escaped(out, r->worst->choice->matrix);
    wlm_text_printf(out, ", N = %lld</td></tr>\n", (long long)r->worst->choice->n);
  }
  wlm_text_puts(out, "</tbody>\n</table></div>\n");
}

static wlm_status put_problem(state *s, const wlm_survey_problem *problem, int open, wlm_text *out) {
  wlm_ratios ratios[WLM_WAYS] = {0};
  wlm_status status;
  for (int way = 0; way < WLM_WAYS; way++) WLM_TRY(wlm_ratios_make(problem, (wlm_way)way, &ratios[way]));
  wlm_text_printf(out, "<details%s><summary>", open ? " open" : "");
  put_escaped(out, problem->key);
  wlm_text_printf(out, " <span>%lld cases</span></summary>\n<div class=\"figures\">\n", (long long)problem->count);
  WLM_TRY(put_maps(s, problem, out));
  wlm_text_puts(out, "</div>\n<div class=\"figures\">\n");
  WLM_TRY(put_distributions(s, ratios, out));
  wlm_text_puts(out, "</div>\n");
  put_ways(problem, ratios, out);
  wlm_text_puts(out, "</details>\n");
done:
  for (int way = 0; way < WLM_WAYS; way++) wlm_ratios_release(&ratios[way]);
  return status;
}

/* ---- places ---------------------------------------------------------------------------------------------- */

static wlm_status put_problems(state *s, wlm_text *out) {
  const wlm_survey *survey = s->page->survey;
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < survey->problem_count && i < MAX_PROBLEMS && status == WLM_OK; i++)
    status = put_problem(s, &survey->problems[i], i == 0, out);
  if (survey->problem_count > MAX_PROBLEMS)
    wlm_text_printf(out, "<p>%lld more problems with fewer cases are not drawn; their candidates are below.</p>\n",
                    (long long)(survey->problem_count - MAX_PROBLEMS));
  return status;
}

static wlm_status put_coverage(state *s, wlm_text *out) {
  static const struct {
    const char *what, *caption;
  } planes[] = {{"Measured matrices by rows and non-zeros a row", "Rows and non-zeros a row"},
                {"Measured matrices by non-zeros a row and skew", "Non-zeros a row and skew"}};
  wlm_status status = WLM_OK;
  for (int plane = 0; plane < 2 && status == WLM_OK; plane++) {
    status = put_figure(s, planes[plane].what, planes[plane].caption, out);
    wlm_draw_coverage(s->page->survey, (wlm_draw_plane)plane, &s->pictures.script);
  }
  return status;
}

static int compare_clocks(const void *left, const void *right) {
  const wlm_measurement_record *a = *(const wlm_measurement_record *const *)left;
  const wlm_measurement_record *b = *(const wlm_measurement_record *const *)right;
  int order = strcmp(a->compiler ? a->compiler : "", b->compiler ? b->compiler : "");
  if (!order) order = strcmp(a->driver ? a->driver : "", b->driver ? b->driver : "");
  return order ? order : (a->made_at > b->made_at) - (a->made_at < b->made_at);
}

static int same_clock(const wlm_measurement_record *a, const wlm_measurement_record *b) {
  return !strcmp(a->compiler ? a->compiler : "", b->compiler ? b->compiler : "") &&
         !strcmp(a->driver ? a->driver : "", b->driver ? b->driver : "");
}

static wlm_status put_clocks(state *s, wlm_text *out) {
  const wlm_class *of = s->page->survey->of;
  const wlm_measurement_record **order;
  wlm_status status = wlm_alloc_array(of->count, sizeof *order, "measurements", (void **)&order);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < of->count; i++) order[i] = &of->records[i];
  qsort(order, (size_t)of->count, sizeof *order, compare_clocks);
  for (int64_t begin = 0, end; begin < of->count; begin = end) {
    char first[DATE], last[DATE];
    for (end = begin; end < of->count && same_clock(order[begin], order[end]);) end++;
    wlm_text_puts(out, "<tr><td>");
    put_escaped(out, order[begin]->compiler);
    wlm_text_puts(out, "</td><td>");
    put_escaped(out, order[begin]->driver);
    wlm_text_printf(out, "</td><td class=\"number\">%lld</td><td>%s</td><td>%s</td></tr>\n", (long long)(end - begin),
                    date_of(order[begin]->made_at, first), date_of(order[end - 1]->made_at, last));
  }
  wlm_free(order);
  return WLM_OK;
}

static wlm_status fill(state *s, const char *file, wlm_text *out);

static wlm_status put_heading(state *s, wlm_text *out) { return put_title(s, out), WLM_OK; }
static wlm_status put_version(state *s, wlm_text *out) {
  return (void)s, wlm_text_puts(out, wlm_version_string()), WLM_OK;
}
static wlm_status put_now(state *s, wlm_text *out) {
  char text[DATE];
  (void)s;
  wlm_text_puts(out, date_of((int64_t)time(NULL), text));
  return WLM_OK;
}
static wlm_status put_data(state *s, wlm_text *out) { return wlm_page_json(s->page->survey, out); }
static wlm_status put_content(state *s, wlm_text *out) {
  return fill(s, s->page->survey ? "sections.html" : "empty.html", out);
}

static const struct {
  const char *name;
  wlm_status (*put)(state *s, wlm_text *out);
} places[] = {{"title", put_heading},     {"facts", put_facts},       {"content", put_content},
              {"problems", put_problems}, {"coverage", put_coverage}, {"clocks", put_clocks},
              {"data", put_data},         {"version", put_version},   {"now", put_now}};

static wlm_status put_place(state *s, const char *name, wlm_text *out) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(places[i].name, name)) return places[i].put(s, out);
  return fill(s, name, out);
}

static const struct wlm_archive_file *find_file(const char *name) {
  for (int i = 0; i < wlm_page_files_count; i++)
    if (!strcmp(wlm_page_files[i].name, name)) return &wlm_page_files[i];
  return NULL;
}

static wlm_status fill(state *s, const char *name, wlm_text *out) {
  const struct wlm_archive_file *file = find_file(name);
  wlm_status status = WLM_OK;
  if (!file) return wlm_fail(WLM_ERR_NOT_FOUND, "cli/page/%s: is not in the program", name);
  for (const char *at = file->begin, *end; at < file->end && status == WLM_OK; at = end) {
    char place[64];
    const char *mark = memmem(at, (size_t)(file->end - at), "@{", 2);
    end = mark ? mark : file->end;
    wlm_text_append(out, at, (size_t)(end - at));
    if (!mark) break;
    end = (const char *)memchr(mark, '}', (size_t)(file->end - mark)) + 1;
    snprintf(place, sizeof place, "%.*s", (int)(end - mark - 3), mark + 2);
    status = put_place(s, place, out);
  }
  return status;
}

wlm_status wlm_page_make(const wlm_page *page, wlm_text *html) {
  state s = {.page = page};
  wlm_text text = {0};
  wlm_status status;
  if (page->survey) wlm_draw_find_families(page->survey, &s.families);
  WLM_TRY(fill(&s, "page.html", &text));
  status = wlm_pictures_finish(&s.pictures, &text, html);
done:
  wlm_pictures_release(&s.pictures);
  wlm_text_release(&text);
  return status;
}
