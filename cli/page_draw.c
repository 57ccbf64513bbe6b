/* Coverage is drawn in the distance that the selection uses. The plane is cut into cells as narrow as the tuning
 * buckets. Each cell shows the distance to the nearest measured bucket, assuming that both are equal in the third
 * dimension. */
#include "cli/page_draw.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "select/select.h"

/* Colours that most people can distinguish, and different shapes. */
static const struct {
  const char *colour;
  int shape;
} marks[] = {{"#0072b2", 7}, {"#d55e00", 5}, {"#009e73", 9}, {"#cc79a7", 13}, {"#e69f00", 11}, {"#56b4e9", 15},
             {"#882255", 6}, {"#555555", 4}, {"#117733", 8}, {"#aa3377", 12}, {"#997700", 10}, {"#004488", 14}};
enum { MARKS = sizeof marks / sizeof *marks };

/* CV has no upper bound: the scale is linear near 0 and logarithmic above 1. */
static const char cv_axis[] =
    "set nonlinear y via log10(1+y) inverse 10**y-1\nset ytics (0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)\n"
    "set ylabel 'skew: CV of the row lengths'\n";
/* Ticks at every power of 2, or of 4 if there would be too many. */
static const char *mean_ticks(double least, double most) {
  return most / least > 200 ? "0.25, 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536"
                            : "0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192";
}

/* ---- the map of winners --------------------------------------------------------------------------------- */

static void family_of(const char *variant, char name[WLM_DRAW_FAMILY]) {
  int size = 0;
  for (; *variant && *variant != '/' && size < WLM_DRAW_FAMILY - 1; variant++)
    name[size++] = isalnum((unsigned char)*variant) ? *variant : '_';
  name[size] = 0;
}

/* The index of the first family whose name is not before `name`. */
static int place_of(const wlmi_draw_families *families, const char *name) {
  int i = 0;
  while (i < families->count && strcmp(families->names[i], name) < 0) i++;
  return i;
}

void wlmi_draw_find_families(const wlmi_overview *overview, wlmi_draw_families *families) {
  *families = (wlmi_draw_families){0};
  for (int64_t k = 0; k < overview->case_count; k++) {
    char name[WLM_DRAW_FAMILY];
    const wlmi_measured *winner = wlmi_overview_winner(&overview->cases[k]);
    if (!winner) continue;
    family_of(winner->variant, name);
    const int i = place_of(families, name);
    if (families->count == WLM_DRAW_FAMILIES || (i < families->count && !strcmp(families->names[i], name))) continue;
    memmove(families->names + i + 1, families->names + i, (size_t)(families->count - i) * sizeof *families->names);
    strcpy(families->names[i], name);
    families->count++;
  }
}

typedef struct range {
  double least, most;
} range;

static void widen(range *r, double value) {
  if (!(value >= r->least)) r->least = value;
  if (!(value <= r->most)) r->most = value;
}

static double mean_of(const wlmi_case *c) { return (double)c->stats->nnz / (double)c->stats->rows; }
/* A logarithmic axis cannot show matrices without non-zeros. */
static int has_place(const wlmi_case *c) { return c->stats->rows > 0 && c->stats->nnz > 0; }

/* Makes room for the legend below the label of the x axis, in columns of at most three lines. */
static void put_margins(wlmi_text *script) {
  wlmi_text_printf(script,
                   "set lmargin at screen %g\nset rmargin at screen %g\nset bmargin at screen %g\n"
                   "set tmargin at screen %g\nset key at screen 0.56,0.19 center top maxrows 3 samplen 2 spacing 1.1\n",
                   WLM_DRAW_LEFT, WLM_DRAW_RIGHT, WLM_DRAW_BOTTOM, WLM_DRAW_TOP);
}

wlmi_draw_axes wlmi_draw_map_axes(const wlmi_overview *overview) {
  range mean = {(double)NAN, (double)NAN}, cv = {0, 1};
  for (int64_t i = 0; i < overview->case_count; i++) {
    if (!has_place(overview->cases[i].choice)) continue;
    widen(&mean, mean_of(overview->cases[i].choice));
    widen(&cv, overview->cases[i].choice->stats->cv);
  }
  if (isnan(mean.least)) mean = (range){1, 1};
  return (wlmi_draw_axes){"mean", "cv", mean.least / 1.6, mean.most * 1.6, -0.08, cv.most * 1.2 + 0.1};
}

static void put_map_axes(const wlmi_overview *overview, wlmi_text *script) {
  const wlmi_draw_axes axes = wlmi_draw_map_axes(overview);
  put_margins(script);
  wlmi_text_printf(
      script,
      "set logscale x\n%sset xlabel 'non-zeros a row' offset 0,0.4\nset xtics (%s)\nset xrange [%.9g:%.9g]\n"
      "set yrange [%.9g:%.9g]\nset grid lc rgb '#dddddd'\n",
      cv_axis, mean_ticks(axes.x_least, axes.x_most), axes.x_least, axes.x_most, axes.y_least, axes.y_most);
}

void wlmi_draw_map(const wlmi_overview *overview, const wlmi_draw_families *families, const wlmi_overview_case *cases,
                   int64_t count, wlmi_text *script) {
  int wins[WLM_DRAW_FAMILIES + 1] = {0}, drawn = 0;
  put_map_axes(overview, script);
  wlmi_text_puts(script, "$cases << END\n");
  for (int64_t i = 0; i < count; i++) {
    char name[WLM_DRAW_FAMILY];
    const wlmi_measured *winner = wlmi_overview_winner(&cases[i]);
    if (!winner || !has_place(cases[i].choice)) continue;
    family_of(winner->variant, name);
    const int family = place_of(families, name);
    wins[family]++;
    wlmi_text_printf(script, "%g %g %d\n", mean_of(cases[i].choice), cases[i].choice->stats->cv, family);
  }
  wlmi_text_puts(script, "END\nplot ");
  for (int i = 0; i <= families->count; i++) {
    if (!wins[i]) continue;
    wlmi_text_printf(script,
                     "%s$cases using ($3==%d?$1:NaN):2 with points pt %d ps 0.9 lw 1.5 lc rgb '%s' title '%s (%d)'",
                     drawn++ ? ", " : "", i, marks[i % MARKS].shape, marks[i % MARKS].colour,
                     i < families->count ? families->names[i] : "others", wins[i]);
  }
  wlmi_text_puts(script, drawn ? "\n" : "NaN notitle\n");
}

/* ---- distributions -------------------------------------------------------------------------------------- */

static const char *ratio_ticks(double most) {
  static const struct {
    double most;
    const char *ticks;
  } scales[] = {{1.3, "1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3"},
                {3, "1, 1.1, 1.2, 1.5, 2, 3"},
                {20, "1, 1.5, 2, 3, 5, 7, 10, 15, 20"},
                {INFINITY, "1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000"}};
  int i = 0;
  while (most > scales[i].most) i++;
  return scales[i].ticks;
}

void wlmi_draw_curves(const wlmi_draw_curve *curves, int count, const char *x_label, wlmi_text *script) {
  int drawn = 0;
  double most = 1.1;
  for (int i = 0; i < count; i++) {
    const wlmi_ratios *r = curves[i].ratios;
    if (!r->count) continue;
    most = fmax(most, r->sorted[r->count - 1]);
    wlmi_text_printf(script, "$curve%d << END\n1 0\n", i);
    for (int64_t k = 0; k < r->count; k++)
      wlmi_text_printf(script, "%.4f %.4f\n", r->sorted[k], 100.0 * (double)(k + 1) / (double)r->count);
    wlmi_text_puts(script, "END\n");
  }
  wlmi_text_printf(
      script,
      "set logscale x\nset xrange [1:%g]\nset yrange [0:102]\nset format y '%%g %%%%'\nset xlabel '%s' offset 0,0.4\n"
      "set ylabel 'of the cases are below'\nset xtics (%s)\nset grid lc rgb '#dddddd'\nset key below "
      "maxrows 3 samplen 2 spacing 1.2\nplot ",
      most * 1.05, x_label, ratio_ticks(most));
  for (int i = 0; i < count; i++) {
    if (!curves[i].ratios->count) continue;
    wlmi_text_printf(script, "%s$curve%d using 1:2 with steps lw 2.5 dt %d lc rgb '%s' title '%s'", drawn++ ? ", " : "",
                     i, i + 1, marks[i].colour, curves[i].title);
  }
  wlmi_text_puts(script, drawn ? "\n" : "NaN notitle\n");
}

/* ---- coverage ------------------------------------------------------------------------------------------- */

typedef enum shade { NEAR, BORROWED, EMPTY } shade;

/* The shade of a cell by its distance to the nearest measured bucket; the dimension that is not shown counts as equal.
 */
static shade shade_of(const wlmi_overview *overview, wlmi_draw_plane plane, const wlmi_bucket *cell) {
  double nearest = INFINITY;
  for (int64_t i = 0; i < overview->case_count && nearest > 1; i++) {
    const wlmi_bucket *measured = &overview->cases[i].choice->bucket;
    wlmi_bucket like = *cell;
    if (plane == WLM_DRAW_ROWS_MEAN)
      like.cv_class = measured->cv_class;
    else
      like.log2_rows = measured->log2_rows;
    nearest = fmin(nearest, wlmi_bucket_distance(measured, 1, &like, 1));
  }
  return nearest <= 1 ? NEAR : nearest <= WLM_FAR ? BORROWED : EMPTY;
}

enum { FIRST_ROWS = 3, LAST_ROWS = 26, FIRST_MEAN = -4, LAST_MEAN = 23, CV_CLASSES = 5 };
static const double cv_edges[CV_CLASSES + 1] = {0, 0.5, 1.5, 4, 16, 64};

/* Adjacent cells of one shade along x become one box. */
static void put_shade(const wlmi_overview *overview, wlmi_draw_plane plane, shade wanted, wlmi_text *script) {
  const int by_rows = plane == WLM_DRAW_ROWS_MEAN;
  const int first_x = by_rows ? FIRST_ROWS : FIRST_MEAN, last_x = by_rows ? LAST_ROWS : LAST_MEAN;
  const int first_y = by_rows ? FIRST_MEAN : 0, last_y = by_rows ? LAST_MEAN : CV_CLASSES - 1;
  const double step = by_rows ? 1 : 0.5; /* of a bucket, in powers of 2 */
  for (int y = first_y; y <= last_y; y++) {
    const double bottom = by_rows ? exp2(y / 2.0) : cv_edges[y], top = by_rows ? exp2((y + 1) / 2.0) : cv_edges[y + 1];
    for (int x = first_x, begin = x; x <= last_x + 1; x++) {
      const wlmi_bucket cell = {WLM_BUCKET_VERSION, by_rows ? x : 0, by_rows ? y : x, by_rows ? 0 : y};
      if (x <= last_x && shade_of(overview, plane, &cell) == wanted) continue;
      if (x > begin) wlmi_text_printf(script, "1 1 %g %g %g %g\n", exp2(begin * step), exp2(x * step), bottom, top);
      begin = x + 1;
    }
  }
}

static void put_points(const wlmi_overview *overview, wlmi_draw_plane plane, wlmi_text *script) {
  for (int64_t i = 0; i < overview->case_count; i++) {
    const wlmi_case *c = overview->cases[i].choice;
    if (!has_place(c)) continue;
    if (plane == WLM_DRAW_ROWS_MEAN)
      wlmi_text_printf(script, "%lld %g\n", (long long)c->stats->rows, mean_of(c));
    else
      wlmi_text_printf(script, "%g %g\n", mean_of(c), c->stats->cv);
  }
}

wlmi_draw_axes wlmi_draw_coverage_axes(wlmi_draw_plane plane) {
  const double mean_least = exp2(FIRST_MEAN / 2.0), mean_most = exp2((LAST_MEAN + 1) / 2.0);
  if (plane == WLM_DRAW_MEAN_CV) return (wlmi_draw_axes){"mean", "cv", mean_least, mean_most, -0.08, 64};
  return (wlmi_draw_axes){"rows", "mean", exp2(FIRST_ROWS), exp2(LAST_ROWS + 1), mean_least, mean_most};
}

void wlmi_draw_coverage(const wlmi_overview *overview, wlmi_draw_plane plane, wlmi_text *script) {
  static const char *const names[] = {"near", "borrowed"}, *const colours[] = {"#7fb7d9", "#dcebf5"},
                           *const titles[] = {"near", "borrowed from"};
  for (int s = NEAR; s <= BORROWED; s++) {
    wlmi_text_printf(script, "$%s << END\n", names[s]);
    put_shade(overview, plane, (shade)s, script);
    wlmi_text_puts(script, "1 1 NaN NaN NaN NaN\nEND\n"); /* gnuplot needs a non-empty block */
  }
  wlmi_text_puts(script, "$measured << END\n");
  put_points(overview, plane, script);
  wlmi_text_puts(script, "NaN NaN\nEND\nset logscale x\nset style fill solid noborder\nset tics front\n");
  put_margins(script);
  const wlmi_draw_axes axes = wlmi_draw_coverage_axes(plane);
  wlmi_text_printf(script, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", axes.x_least, axes.x_most, axes.y_least,
                   axes.y_most);
  if (plane == WLM_DRAW_ROWS_MEAN)
    wlmi_text_printf(script,
                     "set logscale y\nset xlabel 'rows' offset 0,0.4\nset ylabel 'non-zeros a row'\nset ytics (%s)\n"
                     "set format x '1e%%T'\n",
                     mean_ticks(1, INFINITY));
  else
    wlmi_text_printf(script, "%sset xlabel 'non-zeros a row' offset 0,0.4\nset xtics (%s)\n", cv_axis,
                     mean_ticks(1, INFINITY));
  wlmi_text_puts(script, "plot ");
  for (int s = NEAR; s <= BORROWED; s++)
    wlmi_text_printf(script, "$%s using 1:2:3:4:5:6 with boxxyerror lc rgb '%s' title '%s', ", names[s], colours[s],
                     titles[s]);
  wlmi_text_puts(script, "$measured using 1:2 with points pt 7 ps 0.5 lc rgb '#000000' title 'measured'\n");
}
