/* Makes the report page from files under cli/page/ with placeholders @{name}: a name with a dot is another of these
 * files, any other name is a function here. Text from the database is never searched for placeholders, and is escaped.
 */
#include "cli/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/page_draw.h"
#include "cli/page_parts.h"
#include "cli/page_pictures.h"
#include "generator/archive.h"

extern const struct wlmi_archive_file wlmi_page_files[];
extern const int wlmi_page_files_count;

enum { MAX_PROBLEMS = 8, MAX_MAPS = 12, FIGURE_WIDTH = 360, FIGURE_HEIGHT = 330 };

typedef struct state {
  const wlmi_page *page;
  wlmi_pictures pictures;
  wlmi_draw_families families;
} state;

/* ---- figures --------------------------------------------------------------------------------------------- */

/* Tells the page's script the position of the plane and the cases in it. */
static void put_axes(const wlmi_draw_axes *axes, int64_t problem, int64_t n, wlmi_text *out) {
  wlmi_text_printf(out, " data-plane=\"%s %s %.9g %.9g %.9g %.9g %g %g %g %g\"", axes->x, axes->y, axes->x_least,
                   axes->x_most, axes->y_least, axes->y_most, WLM_DRAW_LEFT, WLM_DRAW_RIGHT, 1 - WLM_DRAW_TOP,
                   1 - WLM_DRAW_BOTTOM);
  if (n) wlmi_text_printf(out, " data-problem=\"%lld\" data-n=\"%lld\"", (long long)problem, (long long)n);
}

/* The caller appends the drawing to the script. `what` describes the picture for readers who do not see it. */
static wlm_status put_figure(state *s, const char *what, const char *caption, const char *attributes, wlmi_text *out) {
  wlmi_text_printf(out, "<figure%s><img width=\"%d\" height=\"%d\" alt=\"%s\" src=\"", attributes, FIGURE_WIDTH,
                   FIGURE_HEIGHT, what);
  wlm_status status = wlmi_pictures_open(&s->pictures, out, FIGURE_WIDTH, FIGURE_HEIGHT);
  wlmi_text_printf(out, "\"><figcaption>%s</figcaption></figure>\n", caption);
  return status;
}

static wlm_status put_maps(state *s, const wlmi_overview_problem *problem, wlmi_text *out) {
  const wlmi_draw_axes axes = wlmi_draw_map_axes(s->page->overview);
  int maps = 0;
  wlm_status status = WLM_OK;
  for (int64_t begin = 0, end; begin < problem->count && maps < MAX_MAPS && status == WLM_OK; begin = end, maps++) {
    const int64_t n = problem->cases[begin].choice->n;
    char what[160], caption[80];
    for (end = begin; end < problem->count && problem->cases[end].choice->n == n;) end++;
    snprintf(what, sizeof what, "Map of the winning family of %lld matrices by non-zeros a row and skew, for N = %lld",
             (long long)(end - begin), (long long)n);
    snprintf(caption, sizeof caption, "<strong>N = %lld</strong>: who wins where", (long long)n);
    wlmi_text attributes = {0};
    put_axes(&axes, problem - s->page->overview->problems, n, &attributes);
    status = put_figure(s, what, caption, attributes.data ? attributes.data : "", out);
    wlmi_text_release(&attributes);
    wlmi_draw_map(s->page->overview, &s->families, problem->cases + begin, end - begin, &s->pictures.script);
  }
  return status;
}

static wlm_status put_distributions(state *s, const wlmi_ratios ratios[WLM_WAYS], wlmi_text *out) {
  static const struct {
    wlmi_way ways[3];
    int count;
    const char *what, *caption, *axis;
  } pictures[] = {{{WLM_WAY_GE_SPMM, WLM_WAY_FIXED},
                   2,
                   "Cumulative distribution of the speed-up of the best candidate over fixed references",
                   "<strong>Speed-up</strong> of the best over fixed references",
                   "speed-up of the best"},
                  {{WLM_WAY_RULE, WLM_WAY_BORROWED, WLM_WAY_PREDICTED},
                   3,
                   "Cumulative distribution of the time of what would be chosen over the best time",
                   "<strong>Regret</strong>: time of what would be chosen over the best",
                   "time over the best"}};
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    wlmi_draw_curve curves[3];
    char titles[3][64];
    for (int k = 0; k < pictures[i].count; k++) {
      const wlmi_ratios *r = &ratios[pictures[i].ways[k]];
      snprintf(titles[k], sizeof titles[k], "%s", wlmi_way_names[pictures[i].ways[k]]);
      if (r->count < r->cases)
        snprintf(titles[k], sizeof titles[k], "%s, %lld of %lld cases", wlmi_way_names[pictures[i].ways[k]],
                 (long long)r->count, (long long)r->cases);
      curves[k] = (wlmi_draw_curve){titles[k], r};
    }
    wlm_status status = put_figure(s, pictures[i].what, pictures[i].caption, "", out);
    if (status != WLM_OK) return status;
    wlmi_draw_curves(curves, pictures[i].count, pictures[i].axis, &s->pictures.script);
  }
  return WLM_OK;
}

/* After slow candidates were pruned, a way's choice is in the database only if it was fast. */
static const char caveat[] =
    "<p class=\"caveat\"><strong>Survivors only.</strong> In some cases what a way names is not in the database: never "
    "measured, or pruned because others were quicker. Figures of a way over fewer than all cases are of those that "
    "know it, and flatter; so do <em>borrowed</em> and <em>predicted</em>, which choose among what is left.</p>\n";

static void put_ways(const wlmi_overview_problem *problem, const wlmi_ratios ratios[WLM_WAYS], wlmi_text *out) {
  int survivors = 0;
  wlmi_text_puts(out,
                 "<div class=\"scroll\"><table>\n<caption>Time over the best measured time</caption>\n<thead><tr>"
                 "<th scope=\"col\">way</th><th scope=\"col\" class=\"number\">cases</th><th scope=\"col\" "
                 "class=\"number\">geometric mean</th><th scope=\"col\" class=\"number\">median</th><th "
                 "scope=\"col\" class=\"number\">worst</th><th scope=\"col\">where</th></tr></thead>\n<tbody>\n");
  for (int way = 0; way < WLM_WAYS; way++) {
    const wlmi_ratios *r = &ratios[way];
    if (!r->count) continue;
    wlmi_text_printf(out, "<tr><td>%s", wlmi_way_names[way]);
    if (way == WLM_WAY_FIXED) {
      wlmi_text_puts(out, ": ");
      wlmi_page_put_escaped(out, problem->fixed);
    }
    wlmi_text_printf(out, "</td><td class=\"number\">%lld", (long long)r->count);
    if (r->count < r->cases) wlmi_text_printf(out, " of %lld", (long long)r->cases);
    survivors |= r->count < r->cases;
    wlmi_text_printf(out,
                     "</td><td class=\"number\">%.3fx</td><td class=\"number\">%.3fx</td>"
                     "<td class=\"number\">%.2fx</td><td>",
                     r->mean, r->sorted[r->count / 2], r->sorted[r->count - 1]);
    wlmi_page_put_escaped(out, r->worst->choice->matrix);
    wlmi_text_printf(out, ", N = %lld</td></tr>\n", (long long)r->worst->choice->n);
  }
  wlmi_text_puts(out, "</tbody>\n</table></div>\n");
  if (survivors) wlmi_text_puts(out, caveat);
}

static wlm_status put_problem(state *s, const wlmi_overview_problem *problem, int open, wlmi_text *out) {
  wlmi_ratios ratios[WLM_WAYS] = {0};
  wlm_status status;
  for (int way = 0; way < WLM_WAYS; way++) WLM_TRY(wlmi_ratios_make(problem, (wlmi_way)way, &ratios[way]));
  wlmi_text_printf(out, "<details%s><summary>", open ? " open" : "");
  wlmi_page_put_escaped(out, problem->key);
  wlmi_text_printf(out, " <span>cases: %lld</span></summary>\n<div class=\"figures\">\n", (long long)problem->count);
  WLM_TRY(put_maps(s, problem, out));
  wlmi_text_puts(out, "</div>\n<div class=\"figures\">\n");
  WLM_TRY(put_distributions(s, ratios, out));
  wlmi_text_puts(out, "</div>\n");
  put_ways(problem, ratios, out);
  wlmi_text_puts(out, "</details>\n");
done:
  for (int way = 0; way < WLM_WAYS; way++) wlmi_ratios_release(&ratios[way]);
  return status;
}

/* ---- placeholders ---------------------------------------------------------------------------------------- */

static wlm_status put_problems(state *s, wlmi_text *out) {
  const wlmi_overview *overview = s->page->overview;
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < overview->problem_count && i < MAX_PROBLEMS && status == WLM_OK; i++)
    status = put_problem(s, &overview->problems[i], i == 0, out);
  if (overview->problem_count > MAX_PROBLEMS)
    wlmi_text_printf(out, "<p>%lld more problems with fewer cases are not drawn; their candidates are below.</p>\n",
                     (long long)(overview->problem_count - MAX_PROBLEMS));
  return status;
}

static wlm_status put_coverage(state *s, wlmi_text *out) {
  static const struct {
    const char *what, *caption;
  } planes[] = {{"Measured matrices by rows and non-zeros a row", "Rows and non-zeros a row"},
                {"Measured matrices by non-zeros a row and skew", "Non-zeros a row and skew"}};
  wlm_status status = WLM_OK;
  for (int plane = 0; plane < 2 && status == WLM_OK; plane++) {
    const wlmi_draw_axes axes = wlmi_draw_coverage_axes((wlmi_draw_plane)plane);
    wlmi_text attributes = {0};
    put_axes(&axes, 0, 0, &attributes);
    status = put_figure(s, planes[plane].what, planes[plane].caption, attributes.data ? attributes.data : "", out);
    wlmi_text_release(&attributes);
    wlmi_draw_coverage(s->page->overview, (wlmi_draw_plane)plane, &s->pictures.script);
  }
  return status;
}

static wlm_status fill(state *s, const char *file, wlmi_text *out);

static wlm_status put_title(state *s, wlmi_text *out) {
  wlmi_text_puts(out, s->page->overview ? "warploom: what was measured on " : "warploom: nothing measured");
  if (s->page->overview) wlmi_page_put_escaped(out, s->page->overview->of->records->device.name);
  return WLM_OK;
}
static wlm_status put_facts(state *s, wlmi_text *out) { return wlmi_page_put_facts(s->page, out); }
static wlm_status put_verdict(state *s, wlmi_text *out) {
  return s->page->overview ? wlmi_page_put_verdict(s->page, out) : WLM_OK;
}
static wlm_status put_clocks(state *s, wlmi_text *out) { return wlmi_page_put_clocks(s->page->overview->of, out); }
static wlm_status put_version(state *s, wlmi_text *out) {
  return (void)s, wlmi_text_puts(out, wlm_version_string()), WLM_OK;
}
static wlm_status put_now(state *s, wlmi_text *out) {
  char text[WLM_PAGE_DATE];
  (void)s;
  wlmi_text_puts(out, wlmi_page_date((int64_t)time(NULL), text));
  return WLM_OK;
}
static wlm_status put_data(state *s, wlmi_text *out) { return wlmi_page_json(s->page->overview, out); }
static wlm_status put_content(state *s, wlmi_text *out) {
  return fill(s, s->page->overview ? "sections.html" : "empty.html", out);
}

static const struct {
  const char *name;
  wlm_status (*put)(state *s, wlmi_text *out);
} places[] = {{"title", put_title},     {"verdict", put_verdict},   {"facts", put_facts},
              {"content", put_content}, {"problems", put_problems}, {"coverage", put_coverage},
              {"clocks", put_clocks},   {"data", put_data},         {"version", put_version},
              {"now", put_now}};

static wlm_status put_place(state *s, const char *name, wlmi_text *out) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(places[i].name, name)) return places[i].put(s, out);
  return fill(s, name, out);
}

static const struct wlmi_archive_file *find_file(const char *name) {
  for (int i = 0; i < wlmi_page_files_count; i++)
    if (!strcmp(wlmi_page_files[i].name, name)) return &wlmi_page_files[i];
  return NULL;
}

static wlm_status fill(state *s, const char *name, wlmi_text *out) {
  const struct wlmi_archive_file *file = find_file(name);
  wlm_status status = WLM_OK;
  if (!file) return wlmi_fail(WLM_ERR_NOT_FOUND, "cli/page/%s: is not in the program", name);
  for (const char *at = file->begin, *end; at < file->end && status == WLM_OK; at = end) {
    char place[64];
    const char *mark = memmem(at, (size_t)(file->end - at), "@{", 2);
    end = mark ? mark : file->end;
    wlmi_text_append(out, at, (size_t)(end - at));
    if (!mark) break;
    end = (const char *)memchr(mark, '}', (size_t)(file->end - mark)) + 1;
    snprintf(place, sizeof place, "%.*s", (int)(end - mark - 3), mark + 2);
    status = put_place(s, place, out);
  }
  return status;
}

wlm_status wlmi_page_make(const wlmi_page *page, wlmi_text *html) {
  state s = {.page = page};
  wlmi_text text = {0};
  wlm_status status;
  if (page->overview) wlmi_draw_find_families(page->overview, &s.families);
  WLM_TRY(fill(&s, "page.html", &text));
  status = wlmi_pictures_finish(&s.pictures, &text, html);
done:
  wlmi_pictures_release(&s.pictures);
  wlmi_text_release(&text);
  return status;
}
