/* Variants as values: conversion to names and back, and names of other versions. */
#include "core/problem/variant.h"
#include "support/test.h"

static wlmi_families families;

FIXTURE(begin) {
  static const char *const values[][3] = {
      {"row", "cf", "1"}, {"row", "cf", "2"}, {"row", "axis", "units"}, {"row", "axis", "columns"}, {"wide", "n", "8"}};
  assert_status(WLM_OK, wlmi_families_add(&families, "plain", ""));
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (!i || strcmp(values[i][0], values[i - 1][0]))
      assert_status(WLM_OK, wlmi_families_add(&families, values[i][0], ""));
    assert_status(WLM_OK, wlmi_families_add_value(&families, values[i][1], values[i][2]));
  }
  return 0;
}

FIXTURE(end) {
  wlmi_families_release(&families);
  return 0;
}

TEST(names_become_values_and_names_again) {
  static const struct {
    const char *name, *canonical;
    wlmi_variant value;
  } cases[] = {
      {"row/cf=2,axis=columns", "row/cf=2,axis=columns", {2, {1, 1}}},
      {"row/axis=units,cf=2", "row/cf=2,axis=units", {2, {1, 0}}},
      {"row/,axis=units,,cf=1,", "row/cf=1,axis=units", {2, {0, 0}}},
      {"wide/n=8", "wide/n=8", {3, {0}}},
      {"plain", "plain", {1, {0}}},
      {"plain/", "plain", {1, {0}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[WLMI_VARIANT_NAME];
    GET(wlmi_variant, variant, wlmi_variant_parse(&families, cases[i].name, &variant));
    assert_int_equal(wlmi_variant_compare(&variant, &cases[i].value), 0);
    assert_true(wlmi_variant_same(&variant, &cases[i].value));
    assert_true(wlmi_variant_print(&families, &variant, name));
    assert_string_equal(name, cases[i].canonical);
  }
  assert_int_equal(wlmi_variant_integer(&families, &cases[0].value, "cf"), 2);
  assert_int_equal(wlmi_variant_integer(&families, &cases[0].value, "axis"), 0);
  assert_int_equal(wlmi_variant_integer(&families, &cases[0].value, "lanes"), 0);
}

/* A name from another version gives an unknown variant, which equals no variant, not even another unknown one. */
TEST(unknown_names_are_no_variants) {
  static const char *const names[] = {"",          "rows",      "row",     "row/cf=2",     "row/cf=3,axis=units",
                                      "row/cf=2=", "plain/n=8", "wide/n=", "wide/n=8,n=8", "ro/cf=2,axis=units"};
  const wlmi_variant none = {0};
  char name[WLMI_VARIANT_NAME] = "before";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    wlmi_variant variant = {1, {1}};
    wlmi_variant_recognise(&families, names[i], &variant);
    assert_int_equal(wlmi_variant_compare(&variant, &none), 0);
    assert_false(wlmi_variant_same(&variant, &none));
    variant.family = 1;
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_variant_parse(&families, names[i], &variant));
    assert_int_equal(wlmi_variant_compare(&variant, &none), 0);
  }
  wlmi_variant variant = {1, {1}};
  wlmi_variant_recognise(NULL, "plain", &variant);
  assert_int_equal(variant.family, 0);
  assert_true(wlmi_variant_print(&families, &none, name));
  assert_string_equal(name, "");
}

TEST(a_full_table_is_an_error) {
  static wlmi_families full;
  char text[16];
  for (int i = 0; i < WLMI_FAMILIES; i++) {
    snprintf(text, sizeof text, "family%d", i);
    assert_status(WLM_OK, wlmi_families_add(&full, text, ""));
  }
  assert_status(WLM_ERR_TEMPLATE, wlmi_families_add(&full, "another", ""));
  for (int i = 0; i < WLMI_PARAMETER_VALUES; i++) {
    snprintf(text, sizeof text, "%d", i);
    assert_status(WLM_OK, wlmi_families_add_value(&full, "p", text));
  }
  assert_status(WLM_ERR_TEMPLATE, wlmi_families_add_value(&full, "p", "another"));
  for (int i = 1; i < WLMI_PARAMETERS; i++) {
    snprintf(text, sizeof text, "p%d", i);
    assert_status(WLM_OK, wlmi_families_add_value(&full, text, "1"));
  }
  assert_status(WLM_ERR_TEMPLATE, wlmi_families_add_value(&full, "another", "1"));
  assert_contains(wlm_error_detail(), "family63: has more than 8 parameters");
  wlmi_families_release(&full);
}

GROUP(begin, end)
