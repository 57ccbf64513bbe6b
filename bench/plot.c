/* Two pictures side by side: the speed-up of every case over cuSPARSE against non-zeros a row, and against N. Each case
 * is there twice, unprepared over the best way without preprocess and prepared over the best of all ways. gnuplot gets
 * everything as one script on its standard input, data included, and is started without a shell. */
#include "bench/plot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/core_case.h"

extern char **environ;

enum { MAX_WIDTHS = 32 };

struct series {
  const char *name, *title, *colour;
  double shift;    /* of its points along N, so that the two series stand beside each other */
  wlm_text points; /* nnz/row, N, speed-up */
  wlm_figure means[MAX_WIDTHS];
  double widths[MAX_WIDTHS];
  int width_count;
};

static void add_point(struct series *series, const wlm_core_case *c, double speed_up) {
  int i = 0;
  if (!(speed_up > 0) || !isfinite(speed_up)) return;
  wlm_text_printf(&series->points, "%.4g %.0f %.4f\n", c->nnz / c->rows, c->n, speed_up);
  while (i < series->width_count && series->widths[i] != c->n) i++;
  if (i == MAX_WIDTHS) return;
  series->widths[i] = c->n;
  series->width_count += i == series->width_count;
  wlm_figure_add(&series->means[i], speed_up, c->matrix, c->n);
}

static wlm_status read_points(const char *path, struct series *unprepared, struct series *prepared) {
  char *line = NULL;
  size_t capacity = 0;
  int64_t number = 0;
  wlm_status status = WLM_OK;
  FILE *file = fopen(path, "r");
  if (!file) return wlm_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  while (status == WLM_OK && getline(&line, &capacity, file) > 0) {
    wlm_core_case c;
    number++;
    status = wlm_core_case_read(line, &c);
    if (status != WLM_OK) {
      wlm_fail_in(status, "%s:%lld", path, (long long)number);
      break;
    }
    add_point(unprepared, &c, c.plain_us / c.us);
    add_point(prepared, &c, c.best_us / c.prepared_us);
  }
  fclose(file);
  free(line);
  if (status == WLM_OK && !unprepared->points.size && !prepared->points.size)
    return wlm_fail(WLM_ERR_PARSE, "%s: no line has a time of cuSPARSE beside ours", path);
  return status;
}

static void put_series(wlm_text *script, const struct series *series) {
  wlm_text_printf(script, "$%s << END\n%sEND\n$%s_means << END\n", series->name,
                  series->points.data ? series->points.data : "", series->name);
  for (int i = 0; i < series->width_count; i++)
    wlm_text_printf(script, "%.0f %.4f\n", series->widths[i], wlm_figure_mean(&series->means[i]));
  wlm_text_puts(script, "END\n");
}

/* In gnuplot's single quotes nothing but the quote itself has a meaning. */
static void put_quoted(wlm_text *script, const char *prefix, const char *ending) {
  wlm_text_puts(script, "'");
  for (; *prefix; prefix++) wlm_text_append(script, *prefix == '\'' ? "''" : prefix, *prefix == '\'' ? 2 : 1);
  wlm_text_printf(script, "%s'\n", ending);
}

static void put_plot(wlm_text *script, const struct series *series, int count, int against_n) {
  const char *before = "plot 1 with lines lc rgb '#666666' dt 2 notitle";
  wlm_text_puts(script, before);
  for (int i = 0; i < count; i++) {
    const struct series *s = &series[i];
    if (!s->points.size) continue;
    if (!against_n) {
      wlm_text_printf(script, ", $%s using 1:3 with points pt 7 ps 0.45 lc rgb '%s' title '%s'", s->name, s->colour,
                      s->title);
      continue;
    }
    wlm_text_printf(script, ", $%s using ($2*%g):3 with points pt 7 ps 0.45 lc rgb '%s' notitle", s->name, s->shift,
                    s->colour);
    wlm_text_printf(script,
                    ", $%s_means using ($1*%g):2 with points pt 1 ps 1.6 lw 2.5 lc rgb 'black' notitle"
                    ", $%s_means using ($1*%g):2:(sprintf('%%.2f', $2)) with labels offset 0,%d font ',9' notitle",
                    s->name, s->shift, s->name, s->shift, 1);
  }
  wlm_text_puts(script, "\n");
}

wlm_status wlm_bench_plot_script(const char *path, const char *prefix, wlm_text *script) {
  static const struct {
    const char *terminal, *ending;
  } pictures[] = {
      {"svg size 1100,460 dynamic background rgb 'white' font 'sans-serif,12'", ".svg"},
      {"pngcairo size 1650,690 background rgb 'white' font 'sans-serif,12' fontscale 1.4 pointscale 1.5", ".png"}};
  struct series series[] = {
      {.name = "unprepared",
       .title = "unprepared, over the best cuSPARSE without preprocess",
       .colour = "#0072b2",
       .shift = 0.88},
      {.name = "prepared", .title = "prepared, over the best cuSPARSE of all", .colour = "#d55e00", .shift = 1.14}};
  enum { SERIES = sizeof series / sizeof *series };
  wlm_status status;
  if (strchr(prefix, '\n')) WLM_TRY(wlm_fail(WLM_ERR_INVALID_ARGUMENT, "-o: a line end cannot be in a path"));
  WLM_TRY(read_points(path, &series[0], &series[1]));
  for (int i = 0; i < SERIES; i++) put_series(script, &series[i]);
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    wlm_text_printf(script, "set terminal %s\nset output ", pictures[i].terminal);
    put_quoted(script, prefix, pictures[i].ending);
    wlm_text_puts(script,
                  "set multiplot layout 1,2\nset logscale xy\nset grid ytics lc rgb '#dddddd'\n"
                  "set ylabel 'speed-up over cuSPARSE'\nset yrange [*<0.8:1.25<*]\nset format y '%gx'\n"
                  "set ytics (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64)\n"
                  "set key top right font ',10' opaque\nset xlabel 'non-zeros a row'\nset xtics auto\n"
                  "set xrange [*:*]\n");
    put_plot(script, series, SERIES, 0);
    wlm_text_puts(script, "set xlabel 'N, columns of B (+: geometric mean)'\nset xtics (");
    const struct series *wider = series[0].width_count >= series[1].width_count ? &series[0] : &series[1];
    double least = INFINITY, most = 0;
    for (int k = 0; k < wider->width_count; k++) {
      wlm_text_printf(script, "%s%.0f", k ? ", " : "", wider->widths[k]);
      least = fmin(least, wider->widths[k]);
      most = fmax(most, wider->widths[k]);
    }
    wlm_text_printf(script, ")\nset xrange [%g:%g]\n", least / 1.5, most * 1.5);
    put_plot(script, series, SERIES, 1);
    wlm_text_puts(script, "unset multiplot\nunset output\n");
  }
  if (script->failed) status = wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a picture");
done:
  for (int i = 0; i < SERIES; i++) wlm_text_release(&series[i].points);
  return status;
}

/* Runs gnuplot with the file as its standard input. */
static wlm_status run_gnuplot(FILE *script) {
  char *const argv[] = {"gnuplot", NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int code = 0;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(script), 0);
  int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT)
    return wlm_fail(WLM_ERR_NOT_FOUND, "gnuplot is not installed; on Debian or Ubuntu: apt-get install gnuplot-nox");
  if (error) return wlm_fail(WLM_ERR_IO, "gnuplot: %s", strerror(error));
  while (waitpid(child, &code, 0) < 0)
    if (errno != EINTR) return wlm_fail(WLM_ERR_IO, "gnuplot: %s", strerror(errno));
  if (WIFEXITED(code) && !WEXITSTATUS(code)) return WLM_OK;
  return wlm_fail(WLM_ERR_IO, "gnuplot could not draw (status %d); it says why above", code);
}

wlm_status wlm_bench_plot(const char *path, const char *prefix) {
  wlm_text script = {0};
  FILE *file = NULL;
  wlm_status status;
  WLM_TRY(wlm_bench_plot_script(path, prefix, &script));
  file = tmpfile();
  if (!file || fwrite(script.data, 1, script.size, file) != script.size || fflush(file) || fseek(file, 0, SEEK_SET))
    WLM_TRY(wlm_fail(WLM_ERR_IO, "a temporary file: %s", strerror(errno)));
  status = run_gnuplot(file);
done:
  if (file) fclose(file);
  wlm_text_release(&script);
  return status;
}
