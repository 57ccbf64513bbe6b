/* Writes the verdict of a report. Gains over the rules come from the database's measured times. Times of cuSPARSE or of
 * an OpenMP loop are not in a database; they come from results files of `bench core` or of `compare --json`. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/page_parts.h"

enum { WORST = 3, NAME = 128 };
static const double noise = 0.98; /* a speed-up below this is a loss */

typedef struct tally {
  int64_t count, lost;
  double logs, most;
  char most_case[NAME];
  struct {
    double value;
    char name[NAME];
  } worst[WORST]; /* losses, the worst first */
} tally;

static void add(tally *t, double speed_up, const char *matrix, int64_t n) {
  char name[NAME];
  if (!(speed_up > 0) || isinf(speed_up)) return;
  snprintf(name, sizeof name, "%.96s, N = %lld", matrix && *matrix ? matrix : "(unnamed)", (long long)n);
  t->logs += log(speed_up);
  if (!t->count++ || speed_up > t->most) {
    t->most = speed_up;
    strcpy(t->most_case, name);
  }
  if (speed_up >= noise) return;
  t->lost++;
  int place = WORST;
  while (place && (!*t->worst[place - 1].name || speed_up < t->worst[place - 1].value)) place--;
  if (place == WORST) return;
  memmove(&t->worst[place + 1], &t->worst[place], (size_t)(WORST - 1 - place) * sizeof *t->worst);
  t->worst[place].value = speed_up;
  strcpy(t->worst[place].name, name);
}

/* <li>What: 1.20x in the geometric mean of 20 cases, at most 3x (...). Lost in 2 cases: ... */
static void put(const tally *t, const char *what, int can_lose, wlmi_text *out) {
  if (!t->count) return;
  wlmi_text_printf(out, "<li><strong>%s: %.2fx</strong> in the geometric mean of %lld cases, at most %.2fx (", what,
                   exp(t->logs / (double)t->count), (long long)t->count, t->most);
  wlmi_page_put_escaped(out, t->most_case);
  wlmi_text_puts(out, "). ");
  if (!t->lost && can_lose) wlmi_text_puts(out, "It lost nowhere.");
  if (t->lost) wlmi_text_printf(out, "It lost in %lld: ", (long long)t->lost);
  for (int i = 0; i < WORST && *t->worst[i].name; i++) {
    wlmi_text_printf(out, "%s%.2fx (", i ? ", " : "", t->worst[i].value);
    wlmi_page_put_escaped(out, t->worst[i].name);
    wlmi_text_puts(out, ")");
  }
  if (t->lost) wlmi_text_puts(out, t->lost > WORST ? " and others." : ".");
  wlmi_text_puts(out, "</li>\n");
}

/* ---- from the database ------------------------------------------------------------------------------ */

static void put_over_rules(const wlmi_overview *overview, wlmi_text *out) {
  tally tuned = {0}, predicted = {0};
  for (int64_t i = 0; i < overview->case_count; i++) {
    const wlmi_overview_case *c = &overview->cases[i];
    const wlmi_measured *rule = c->chosen[WLM_WAY_RULE], *model = c->chosen[WLM_WAY_PREDICTED];
    if (!rule || isnan(c->best)) continue;
    add(&tuned, rule->cost / c->best, c->choice->matrix, c->choice->n);
    if (model) add(&predicted, rule->cost / model->cost, c->choice->matrix, c->choice->n);
  }
  put(&tuned, "Tuning a matrix, over the built-in rules", 0, out);
  put(&predicted, "The model on matrices that it did not see, over the rules", 1, out);
}

/* ---- from results files ----------------------------------------------------------------------------- */

typedef struct baselines {
  const char *device;
  tally plain, kept; /* unprepared on both sides; with preparation kept */
} baselines;

/* The least number among the members whose keys end with `ending`; infinite if there is none. */
static double least(const json_t *times, const char *ending) {
  double best = INFINITY;
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)times, key, value) {
    const size_t size = strlen(key), tail = strlen(ending);
    if (size >= tail && !strcmp(key + size - tail, ending) && json_is_number(value))
      best = fmin(best, json_number_value(value));
  }
  return best;
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void add_line_of_core(baselines *b, const json_t *line, const char *matrix) {
  const json_t *times = json_object_get(line, "cusparse"), *on_host = json_object_get(line, "host_rivals");
  const int64_t n = (int64_t)number(line, "n");
  const double us = number(line, "us"), prepared = number(line, "prepared_us");
  if (json_is_object(times)) {
    add(&b->plain, least(times, "_nopre") / us, matrix, n);
    add(&b->kept, least(times, "") / fmin(us, prepared), matrix, n);
  } else if (json_is_object(on_host)) {
    add(&b->plain, number(on_host, "openmp") / us, matrix, n);
  }
}

static void add_line_of_compare(baselines *b, const json_t *line, const char *matrix) {
  const json_t *kind = json_object_get(line, "device_kind");
  size_t i;
  json_t *one;
  json_array_foreach(json_object_get(line, "comparisons"), i, one) {
    const int64_t n = (int64_t)number(one, "n");
    add(&b->plain, number(one, "speed_up"), matrix, n);
    if (json_is_string(kind) && !strcmp(json_string_value(kind), "cuda"))
      add(&b->kept, number(one, "speed_up_prepared"), matrix, n);
  }
}

static void add_line(baselines *b, const json_t *line) {
  const char *device = json_string_value(json_object_get(line, "device"));
  const char *suite = json_string_value(json_object_get(line, "suite"));
  const char *matrix = json_string_value(json_object_get(line, "matrix"));
  const char *input = json_string_value(json_object_get(line, "input"));
  if (!device || strcmp(device, b->device)) return;
  if (suite && !strcmp(suite, "core") && matrix) add_line_of_core(b, line, matrix);
  if (!suite && input) add_line_of_compare(b, line, input);
}

static wlm_status read_results(const char *path, baselines *b) {
  wlm_status status = WLM_OK;
  char *text = NULL;
  size_t capacity = 0;
  FILE *file = fopen(path, "r");
  if (!file) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  for (int64_t number = 1; status == WLM_OK && getline(&text, &capacity, file) > 0; number++) {
    json_error_t error;
    json_t *line = json_loads(text, 0, &error);
    if (!json_is_object(line))
      status = wlmi_fail(WLM_ERR_PARSE, "%s:%lld: is no line of bench core or compare --json", path, (long long)number);
    else
      add_line(b, line);
    json_decref(line);
  }
  fclose(file);
  free(text);
  return status;
}

wlm_status wlmi_page_put_verdict(const wlmi_page *page, wlmi_text *out) {
  const wlmi_device_record *device = &page->overview->of->records->device;
  const int on_gpu = !strcmp(device->kind, "cuda");
  baselines b = {.device = device->name};
  wlm_status status = WLM_OK;
  for (int i = 0; i < page->result_count && status == WLM_OK; i++) status = read_results(page->results[i], &b);
  if (status != WLM_OK) return status;
  if (page->result_count && !b.plain.count && !b.kept.count)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: holds no case of bench core or compare on %s", page->results[0],
                     device->name);
  put(&b.plain, on_gpu ? "Over cuSPARSE without preprocessing" : "Over a plain OpenMP loop", 1, out);
  put(&b.kept, "Over cuSPARSE with its preprocessing kept", 1, out);
  if (!page->result_count)
    wlmi_text_printf(
        out,
        "<li>Over %s: not in this database. Give the results of <code>warploom bench core -o "
        "core.jsonl</code> or <code>warploom compare --json</code> to <code>warploom report</code>.</li>\n",
        on_gpu ? "cuSPARSE" : "a plain OpenMP loop");
  put_over_rules(page->overview, out);
  return WLM_OK;
}
