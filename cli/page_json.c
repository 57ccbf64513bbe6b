#include "cli/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/memory.h"

/* The most candidates of a case in the page; slower ones are never chosen. */
enum { MOST_CANDIDATES = 60 };

/* ---- names of variants, each once ------------------------------------------------------------------------ */

typedef struct names {
  const char **sorted;
  int64_t count;
} names;

static int compare_names(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static wlm_status gather(const wlmi_overview *overview, names *all) {
  int64_t capacity = 0, kept = 0;
  for (int64_t i = 0; i < overview->case_count; i++) capacity += overview->cases[i].choice->count;
  wlm_status status = wlmi_alloc_array(capacity, sizeof *all->sorted, "variants", (void **)&all->sorted);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < overview->case_count; i++)
    for (int64_t k = 0; k < overview->cases[i].choice->count; k++)
      all->sorted[all->count++] = overview->cases[i].choice->candidates[k].variant;
  qsort(all->sorted, (size_t)all->count, sizeof *all->sorted, compare_names);
  for (int64_t i = 0; i < all->count; i++)
    if (!i || strcmp(all->sorted[i], all->sorted[kept - 1])) all->sorted[kept++] = all->sorted[i];
  all->count = kept;
  return WLM_OK;
}

static int64_t index_of(const names *all, const char *name) {
  const char **found = bsearch(&name, all->sorted, (size_t)all->count, sizeof *all->sorted, compare_names);
  return found - all->sorted;
}

/* ---- cases -------------------------------------------------------------------------------------------------- */

static int compare_costs(const void *left, const void *right) {
  const wlmi_measured *a = *(const wlmi_measured *const *)left;
  const wlmi_measured *b = *(const wlmi_measured *const *)right;
  return (a->cost > b->cost) - (a->cost < b->cost);
}

static void put_candidates(const names *all, const wlmi_case *choice, const wlmi_measured **order, wlmi_text *out) {
  for (int64_t i = 0; i < choice->count; i++) order[i] = &choice->candidates[i];
  qsort(order, (size_t)choice->count, sizeof *order, compare_costs);
  wlmi_json_open(out, "candidates", '[');
  for (int64_t i = 0; i < choice->count && i < MOST_CANDIDATES; i++) {
    wlmi_json_open(out, NULL, '[');
    wlmi_json_integer(out, NULL, index_of(all, order[i]->variant));
    wlmi_json_real(out, NULL, "%.6g", order[i]->cost * 1e-6);
    wlmi_json_real(out, NULL, "%.4g", order[i]->spread * 1e-6);
    wlmi_json_real(out, NULL, "%.6g", order[i]->prepare * 1e-6);
    wlmi_json_integer(out, NULL, order[i]->count);
    wlmi_json_integer(out, NULL, order[i]->precise);
    wlmi_json_close(out, ']');
  }
  wlmi_json_close(out, ']');
}

/* The variant that each way of choosing names. */
static void put_ways(const names *all, const wlmi_overview_case *c, wlmi_text *out) {
  wlmi_json_open(out, "ways", '[');
  for (int way = 0; way < WLM_WAYS; way++) {
    if (!c->chosen[way]) continue;
    wlmi_json_open(out, NULL, '[');
    wlmi_json_string(out, NULL, wlmi_way_names[way]);
    wlmi_json_integer(out, NULL, index_of(all, c->chosen[way]->variant));
    wlmi_json_close(out, ']');
  }
  wlmi_json_close(out, ']');
}

static void put_case(int64_t problem, const names *all, const wlmi_overview_case *of, const wlmi_measured **order,
                     wlmi_text *out) {
  const wlmi_case *c = of->choice;
  char bucket[WLM_BUCKET_TEXT], id[WLM_HASH_HEX];
  wlmi_bucket_print(&c->bucket, bucket);
  wlmi_hash_to_hex((wlmi_hash){c->stats->fingerprint[0], c->stats->fingerprint[1]}, id);
  wlmi_json_open(out, NULL, '{');
  wlmi_json_integer(out, "problem", problem);
  wlmi_json_string(out, "id", id);
  wlmi_json_string(out, "matrix", c->matrix && *c->matrix ? c->matrix : "(unnamed)");
  wlmi_json_integer(out, "n", c->n);
  wlmi_json_integer(out, "rows", c->stats->rows);
  wlmi_json_integer(out, "nnz", c->stats->nnz);
  wlmi_json_real(out, "cv", "%.6g", c->stats->cv);
  wlmi_json_string(out, "bucket", bucket);
  const wlmi_measured *winner = wlmi_overview_winner(of);
  if (winner) wlmi_json_integer(out, "winner", index_of(all, winner->variant));
  if (winner) wlmi_json_real(out, "us", "%.6g", winner->cost * 1e-6);
  wlmi_json_integer(out, "failed", c->failed);
  wlmi_json_integer(out, "more", c->count > MOST_CANDIDATES ? c->count - MOST_CANDIDATES : 0);
  put_ways(all, of, out);
  put_candidates(all, c, order, out);
  wlmi_json_close(out, '}');
}

/* Escapes text that could end the script element. */
static void append_escaped(const wlmi_text *json, wlmi_text *out) {
  for (size_t i = 0; i < json->size; i++)
    if (json->data[i] == '<')
      wlmi_text_puts(out, "\\u003c");
    else
      wlmi_text_append(out, &json->data[i], 1);
  out->failed |= json->failed;
}

wlm_status wlmi_page_json(const wlmi_overview *overview, wlmi_text *out) {
  const wlmi_measured **order = NULL;
  wlmi_text json = {0};
  names all = {0};
  int64_t most = 1;
  wlm_status status;
  for (int64_t i = 0; i < overview->case_count; i++)
    if (overview->cases[i].choice->count > most) most = overview->cases[i].choice->count;
  WLM_TRY(wlmi_alloc_array(most, sizeof *order, "candidates", (void **)&order));
  WLM_TRY(gather(overview, &all));
  wlmi_json_open(&json, NULL, '{');
  wlmi_json_open(&json, "problems", '[');
  for (int64_t i = 0; i < overview->problem_count; i++) wlmi_json_string(&json, NULL, overview->problems[i].key);
  wlmi_json_close(&json, ']');
  wlmi_json_open(&json, "variants", '[');
  for (int64_t i = 0; i < all.count; i++) wlmi_json_string(&json, NULL, all.sorted[i]);
  wlmi_json_close(&json, ']');
  wlmi_json_open(&json, "cases", '[');
  for (int64_t p = 0; p < overview->problem_count; p++)
    for (int64_t i = 0; i < overview->problems[p].count; i++)
      put_case(p, &all, &overview->problems[p].cases[i], order, &json);
  wlmi_json_close(&json, ']');
  wlmi_json_close(&json, '}');
  append_escaped(&json, out);
done:
  wlmi_text_release(&json);
  wlmi_free(order);
  wlmi_free(all.sorted);
  return status;
}
