#include "bench/figure.h"

#include <math.h>
#include <string.h>

static void keep(double value, double *extreme, char name[], const char *matrix, double n) {
  *extreme = value;
  snprintf(name, WLM_CASE_NAME + 48, "%s, N = %.0f", matrix, n);
}

void wlmi_figure_add(wlmi_figure *figure, double value, const char *matrix, double n) {
  if (!(value > 0)) return;
  const int first = !figure->count++;
  figure->log_sum += log(value);
  if (first || value < figure->least) keep(value, &figure->least, figure->least_case, matrix, n);
  if (first || value > figure->greatest) keep(value, &figure->greatest, figure->greatest_case, matrix, n);
}

double wlmi_figure_mean(const wlmi_figure *figure) {
  return figure->count ? exp(figure->log_sum / figure->count) : NAN;
}

void wlmi_figure_list_add(wlmi_figure_list *ranked, int greatest_is_worst, double value, const char *matrix, double n) {
  if (!(value > 0)) return;
  wlmi_figure_add(&ranked->all, value, matrix, n);
  int place = ranked->worst_count;
  while (place && (greatest_is_worst ? value > ranked->worst[place - 1].value : value < ranked->worst[place - 1].value))
    place--;
  if (place == WLM_WORST) return;
  ranked->worst_count += ranked->worst_count < WLM_WORST;
  memmove(&ranked->worst[place + 1], &ranked->worst[place],
          (size_t)(ranked->worst_count - place - 1) * sizeof *ranked->worst);
  keep(value, &ranked->worst[place].value, ranked->worst[place].name, matrix, n);
}

void wlmi_figure_list_put(const wlmi_figure_list *ranked, int most, FILE *out) {
  for (int i = 0; i < ranked->worst_count && i < most; i++)
    fprintf(out, "%s %.2fx (%s)", i ? "," : "", ranked->worst[i].value, ranked->worst[i].name);
}

void wlmi_put_us(FILE *out, double us) {
  if (isfinite(us))
    fprintf(out, " %.1f |", us);
  else
    fputs(" - |", out);
}

void wlmi_put_ratio(FILE *out, double ratio) {
  if (isfinite(ratio))
    fprintf(out, " %.2fx |", ratio);
  else
    fputs(" - |", out);
}
