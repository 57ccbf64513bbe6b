/* Draws two plots side by side: the speed-up of every case over cuSPARSE against non-zeros per row, and against N. Each
 * case has two points: unprepared over cuSPARSE's best way without preprocess, and prepared over the best of all ways.
 * gnuplot reads one script with the data from its standard input, without a shell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/summary.h"
#include "cli/gnuplot.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/output.h"

enum { UNPREPARED, PREPARED, SERIES, MAX_WIDTHS = 32 };

struct series {
  const char *name, *title, *colour;
  double shift;        /* offset of its points along N, so that the two series do not overlap */
  double label_height; /* height of the labels with the means */
  wlmi_text points;    /* nnz/row, N, speed-up */
  double least, greatest;
  wlmi_figure means[MAX_WIDTHS];
  double widths[MAX_WIDTHS];
  int width_count;
};

static void add_point(struct series *series, const wlmi_core_case *c, double speed_up) {
  int i = 0;
  if (!(speed_up > 0) || !isfinite(speed_up)) return;
  series->least = series->points.size ? fmin(series->least, speed_up) : speed_up;
  series->greatest = fmax(series->greatest, speed_up);
  wlmi_text_printf(&series->points, "%.4g %.0f %.4f\n", c->nnz / c->rows, c->n, speed_up);
  while (i < series->width_count && series->widths[i] != c->n) i++;
  if (i == MAX_WIDTHS) return;
  series->widths[i] = c->n;
  series->width_count += i == series->width_count;
  wlmi_figure_add(&series->means[i], speed_up, c->matrix, c->n);
}

static wlm_status add_points(void *user, const char *line) {
  struct series *series = user;
  wlmi_core_case c;
  wlm_status status = wlmi_core_case_read(line, &c);
  if (status != WLM_OK) return status;
  add_point(&series[UNPREPARED], &c, c.plain_us / c.us);
  add_point(&series[PREPARED], &c, c.best_us / c.prepared_us);
  return WLM_OK;
}

static wlm_status read_points(const char *path, struct series series[SERIES]) {
  wlm_status status = wlmi_results_each(path, add_points, series);
  if (status == WLM_OK && !series[UNPREPARED].points.size && !series[PREPARED].points.size)
    return wlmi_fail(WLM_ERR_PARSE, "%s: no line has a time of cuSPARSE beside ours", path);
  return status;
}

static void put_series(wlmi_text *script, const struct series *series) {
  wlmi_text_printf(script, "$%s << END\n%sEND\n$%s_means << END\n", series->name,
                   series->points.data ? series->points.data : "", series->name);
  for (int i = 0; i < series->width_count; i++)
    wlmi_text_printf(script, "%.0f %.4f\n", series->widths[i], wlmi_figure_mean(&series->means[i]));
  wlmi_text_puts(script, "END\n");
}

/* Against N the points of a series stand next to the tick; a bar shows the geometric mean, with its number above. */
static void put_plot(wlmi_text *script, const struct series series[SERIES], int against_n) {
  wlmi_text_puts(script, "plot 1 with lines lw 1.5 lc rgb '#666666' dt 2 notitle");
  for (int i = 0; i < SERIES; i++) {
    const struct series *s = &series[i];
    if (!s->points.size) continue;
    if (against_n)
      wlmi_text_printf(script,
                       ", $%s using ($2*%g):3 with points pt 6 ps 0.6 lc rgb '%s' notitle"
                       ", $%s_means using ($1*%g):2:($1*%g):($1*%g):2:2 with xyerrorbars pt 0 lw 3 lc rgb '%s' notitle"
                       ", $%s_means using ($1*%g):(%g):(sprintf('%%.2f', $2)) with labels tc rgb '%s' notitle",
                       s->name, s->shift, s->colour, s->name, s->shift, s->shift * 0.9, s->shift / 0.9, s->colour,
                       s->name, s->shift, series[i].label_height, s->colour);
    else
      wlmi_text_printf(script, ", $%s using 1:3 with points pt 6 ps 0.6 lc rgb '%s' title '%s'", s->name, s->colour,
                       s->title);
  }
  wlmi_text_puts(script, "\n");
}

static void put_ticks(wlmi_text *script, const struct series *series) {
  double least = INFINITY, most = 0;
  wlmi_text_puts(script, "set xtics (");
  for (int i = 0; i < series->width_count; i++) {
    wlmi_text_printf(script, "%s%.0f", i ? ", " : "", series->widths[i]);
    least = fmin(least, series->widths[i]);
    most = fmax(most, series->widths[i]);
  }
  wlmi_text_printf(script, ")\nset xrange [%g:%g]\n", least / 1.5, most * 1.5);
}

static const struct {
  const char *terminal, *ending;
} pictures[] = {
    {"svg size 1200,500 dynamic background rgb 'white' font 'sans-serif,13'", ".svg"},
    {"pngcairo size 1800,750 background rgb 'white' font 'sans-serif,13' fontscale 1.4 pointscale 1.6", ".png"}};
enum { PICTURES = sizeof pictures / sizeof *pictures };

/* Writes gnuplot's input: data blocks, then commands. The pictures get the path `drawn` and an ending. */
static wlm_status write_script(const char *path, const char *drawn, wlmi_text *script) {
  struct series series[SERIES] = {
      {.name = "unprepared",
       .title = "unprepared, over the best cuSPARSE without preprocess",
       .colour = "#0072b2",
       .shift = 0.86},
      {.name = "prepared", .title = "prepared, over the best cuSPARSE of all", .colour = "#d55e00", .shift = 1.16}};
  double least = 1, greatest = 1;
  wlm_status status;
  WLM_TRY(read_points(path, series));
  for (int i = 0; i < SERIES; i++) {
    put_series(script, &series[i]);
    if (series[i].points.size) least = fmin(least, series[i].least);
    greatest = fmax(greatest, series[i].greatest);
  }
  for (int i = 0; i < SERIES; i++) series[i].label_height = greatest * 1.45;
  for (int i = 0; i < PICTURES; i++) {
    wlmi_text_printf(script, "set terminal %s\nset output ", pictures[i].terminal);
    wlmi_gnuplot_quoted(script, drawn, pictures[i].ending);
    wlmi_text_printf(script,
                     "\nset multiplot layout 1,2\nset logscale xy\nset grid ytics lc rgb '#dddddd'\n"
                     "set ylabel 'speed-up over cuSPARSE'\nset yrange [%g:%g]\nset format y '%%gx'\n"
                     "set ytics (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128)\n"
                     "set key top left font ',11' opaque Left reverse\n"
                     "set xlabel 'non-zeros a row'\nset xtics auto\nset xrange [*:*]\n",
                     least / 1.2, greatest * 1.8);
    put_plot(script, series, 0);
    wlmi_text_puts(script, "set xlabel 'N, columns of B (bar and number: geometric mean)'\n");
    put_ticks(script, &series[series[1].width_count > series[0].width_count]);
    put_plot(script, series, 1);
    wlmi_text_puts(script, "unset multiplot\nunset output\n");
  }
  if (script->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a picture");
done:
  for (int i = 0; i < SERIES; i++) wlmi_text_release(&series[i].points);
  return status;
}

static wlm_status deliver(const char *drawn, const char *prefix, const char *ending) {
  wlmi_text from = {0}, to = {0};
  char *picture = NULL;
  size_t size;
  wlm_status status = WLM_OK;
  wlmi_text_printf(&from, "%s%s", drawn, ending);
  wlmi_text_printf(&to, "%s%s", prefix, ending);
  if (from.failed || to.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of a picture"));
  WLM_TRY(wlmi_file_read(from.data, &picture, &size));
  status = wlmi_output_write(to.data, picture, size);
done:
  wlmi_free(picture);
  wlmi_text_release(&from);
  wlmi_text_release(&to);
  return status;
}

/* gnuplot would empty the old pictures before it draws, so it draws into a temporary folder. */
wlm_status wlmi_bench_plot(const char *path, const char *prefix) {
  wlmi_temporary temporary = {0};
  wlmi_text script = {0};
  char drawn[WLM_TEMPORARY_NAME + 16];
  wlm_status status;
  WLM_TRY(wlmi_gnuplot_folder(&temporary));
  snprintf(drawn, sizeof drawn, "%s/picture", temporary.folder);
  WLM_TRY(write_script(path, drawn, &script));
  WLM_TRY(wlmi_gnuplot(&script));
  for (int i = 0; i < PICTURES; i++) WLM_TRY(deliver(drawn, prefix, pictures[i].ending));
done:
  wlmi_temporary_close(&temporary);
  wlmi_text_release(&script);
  return status;
}
