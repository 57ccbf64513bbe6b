/* Compares two stores. Everything is sorted by what identifies it, so each part is one walk along both lists. */
#include "db/diff.h"

#include <string.h>

#include "core/base/memory.h"

/* Positions in two sorted lists. */
typedef struct walk {
  int64_t i, j, count_a, count_b;
} walk;

static int is_over(const walk *w) { return w->i == w->count_a && w->j == w->count_b; }

/* Advances the list with the smaller element, or both if they are equal; returns which lists it advanced, 1 | 2. */
static int step(walk *w, int order) {
  if (w->i == w->count_a) order = 1;
  if (w->j == w->count_b) order = w->i == w->count_a ? 0 : -1;
  int sides = order < 0 ? 1 : order > 0 ? 2 : 3;
  w->i += sides & 1;
  w->j += sides >> 1;
  return sides;
}

static int both_left(const walk *w) { return w->i < w->count_a && w->j < w->count_b; }

typedef wlm_status id_of(const wlmi_content *content, int64_t i, char id[WLMI_HASH_HEX]);

static wlm_status measurement_id(const wlmi_content *content, int64_t i, char id[WLMI_HASH_HEX]) {
  return wlmi_measurement_id(&content->records[i], id);
}

static wlm_status recorded_id(const wlmi_content *content, int64_t i, char id[WLMI_HASH_HEX]) {
  return wlmi_recorded_id(&content->recorded[i], id);
}

static wlm_status compare_ids(const wlmi_content *a, const wlmi_content *b, walk w, id_of *id, wlmi_overlap *overlap) {
  char left[WLMI_HASH_HEX], right[WLMI_HASH_HEX];
  for (int sides = 3; !is_over(&w);) {
    if (sides & 1 && w.i < w.count_a) WLM_CHECK(id(a, w.i, left));
    if (sides & 2 && w.j < w.count_b) WLM_CHECK(id(b, w.j, right));
    sides = step(&w, both_left(&w) ? strcmp(left, right) : 0);
    ++*(sides == 3 ? &overlap->both : sides == 1 ? &overlap->only_a : &overlap->only_b);
  }
  return WLM_OK;
}

static wlm_status compare_pins(const wlmi_content *a, const wlmi_content *b, wlmi_diff *diff) {
  walk w = {0, 0, a->pin_count, b->pin_count};
  while (!is_over(&w)) {
    const wlmi_pin_record *left = a->pins + w.i, *right = b->pins + w.j;
    int sides = step(&w, both_left(&w) ? wlmi_pin_compare(left, right) : 0);
    if (sides == 3 && !strcmp(left->variant, right->variant)) continue;
    WLM_CHECK(wlmi_grow((void **)&diff->pins, diff->pin_count, &diff->pin_capacity, sizeof *diff->pins, "pins"));
    diff->pins[diff->pin_count++] = (wlmi_pin_difference){sides & 1 ? left : NULL, sides & 2 ? right : NULL};
  }
  return WLM_OK;
}

/* The order of matrices in wlmi_cases. */
static int compare_matrices(const wlmi_case *a, const wlmi_case *b) {
  const uint64_t *left = a->stats->fingerprint, *right = b->stats->fingerprint;
  int order = strcmp(a->problem, b->problem);
  if (!order) order = (a->n > b->n) - (a->n < b->n);
  if (!order) order = (left[0] > right[0]) - (left[0] < right[0]);
  return order ? order : (left[1] > right[1]) - (left[1] < right[1]);
}

static const char *winner(const wlmi_case *choice) {
  return choice && choice->count ? choice->candidates[0].variant : "";
}

static wlm_status compare_choices(const char *name, const wlmi_cases *a, const wlmi_cases *b, wlmi_diff *diff) {
  walk w = {0, 0, a->count, b->count};
  while (!is_over(&w)) {
    const wlmi_case *left = a->list + w.i, *right = b->list + w.j;
    int sides = step(&w, both_left(&w) ? compare_matrices(left, right) : 0);
    wlmi_choice_difference difference = {name, sides & 1 ? left : NULL, sides & 2 ? right : NULL};
    if (!strcmp(winner(difference.a), winner(difference.b))) continue;
    WLM_CHECK(wlmi_grow((void **)&diff->choices, diff->choice_count, &diff->choice_capacity, sizeof *diff->choices,
                        "choices"));
    diff->choices[diff->choice_count++] = difference;
  }
  return WLM_OK;
}

static const wlmi_cases *choices_of(const wlmi_class *classes, int64_t count, const char *name) {
  static const wlmi_cases none;
  for (int64_t i = 0; i < count; i++)
    if (!strcmp(classes[i].name, name)) return &classes[i].choices;
  return &none;
}

static wlm_status compare_classes(wlmi_content *contents[2], wlmi_diff *diff) {
  static const wlmi_cases none;
  for (int side = 0; side < 2; side++)
    WLM_CHECK(wlmi_classes_make(contents[side]->records, contents[side]->count, &diff->classes[side],
                                &diff->class_counts[side]));
  for (int64_t i = 0; i < diff->class_counts[0]; i++) {
    const wlmi_class *class = &diff->classes[0][i];
    WLM_CHECK(compare_choices(class->name, &class->choices,
                              choices_of(diff->classes[1], diff->class_counts[1], class->name), diff));
  }
  for (int64_t i = 0; i < diff->class_counts[1]; i++) {
    const wlmi_class *class = &diff->classes[1][i];
    if (!choices_of(diff->classes[0], diff->class_counts[0], class->name)->count)
      WLM_CHECK(compare_choices(class->name, &none, &class->choices, diff));
  }
  return WLM_OK;
}

wlm_status wlmi_diff_make(wlmi_content *a, wlmi_content *b, wlmi_diff *diff) {
  wlmi_content *contents[2] = {a, b};
  wlm_status status;
  *diff = (wlmi_diff){0};
  WLM_TRY(compare_ids(a, b, (walk){0, 0, a->count, b->count}, measurement_id, &diff->measurements));
  WLM_TRY(compare_ids(a, b, (walk){0, 0, a->recorded_count, b->recorded_count}, recorded_id, &diff->recorded));
  WLM_TRY(compare_pins(a, b, diff));
  status = compare_classes(contents, diff);
done:
  if (status != WLM_OK) wlmi_diff_release(diff);
  return status;
}

void wlmi_diff_release(wlmi_diff *diff) {
  for (int side = 0; side < 2; side++) wlmi_classes_free(diff->classes[side], diff->class_counts[side]);
  wlmi_free(diff->choices);
  wlmi_free(diff->pins);
  *diff = (wlmi_diff){0};
}
