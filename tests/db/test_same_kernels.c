/* Measurements of kernels that core/problem/same_kernels.inc lists as the same, in the place of which these tests have
 * a list of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/**/
#include <cmocka.h>

#include "core/base/hash.h"
#include "core/problem/same_kernels.h"
#include "db/interchange.h"
#include "select/case.h"
#include "support/db_fixture.h"
#include "tuner/known.h"

#define OLDEST "00000000000000000000000000abcdef"
#define OLDER  "11111111111111111111111111111111"
#define NOW    "22222222222222222222222222222222"
#define OTHER  "33333333333333333333333333333333"

static const wlmi_same_kernel list[] = {{"row_crc", OLDEST, OLDER}, {"row_crc", OLDER, NOW}};

/* The linker puts it in the place of the library's (tests/CMakeLists.txt). */
const char *__wrap_wlmi_same_kernel_now(const char *hash);
const char *__wrap_wlmi_same_kernel_now(const char *hash) { return wlmi_same_kernel_in(list, 2, hash); }

static void lists_are_followed(void **state) {
  (void)state;
  assert_string_equal(wlmi_same_kernel_in(list, 2, OLDEST), NOW);
  assert_string_equal(wlmi_same_kernel_in(list, 2, OLDER), NOW);
  assert_string_equal(wlmi_same_kernel_in(list, 2, NOW), NOW);
  assert_string_equal(wlmi_same_kernel_in(list, 2, OTHER), OTHER);
  assert_string_equal(wlmi_same_kernel_in(list, 2, ""), "");
  assert_string_equal(wlmi_same_kernel_in(list, 0, OLDEST), OLDEST);
}

static void the_shipped_list_is_sorted_and_ends(void **state) {
  (void)state;
  wlmi_hash hash;
  for (int64_t i = 0; i < wlmi_same_kernels_count; i++) {
    const wlmi_same_kernel *row = &wlmi_same_kernels[i];
    if (i) assert_true(strcmp(row[-1].before, row->before) < 0);
    assert_true(wlmi_hash_from_hex(row->before, &hash) && wlmi_hash_from_hex(row->now, &hash));
    const char *end = row->before, *last = NULL;
    for (int64_t steps = 0; end != last; steps++) {
      assert_in_range(steps, 0, wlmi_same_kernels_count); /* a circle would not end */
      last = end;
      for (int64_t k = 0; k < wlmi_same_kernels_count; k++)
        if (!strcmp(last, wlmi_same_kernels[k].before)) end = wlmi_same_kernels[k].now;
    }
  }
}

static int is_known(wlm_store *store, const char *hash) {
  static const uint64_t fingerprint[2] = {0x11, 0x12};
  static const char problem[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
  wlmi_known *known;
  wlmi_known_time time;
  assert_status(WLM_OK, wlmi_known_load(store, "cuda/sm_90/NVIDIA H200/132", "nvrtc 13.0", "580.65", &known));
  const int found =
      wlmi_known_find(known, wlmi_known_key(fingerprint, problem, 32), "row_crc/cf=1,rows=1", hash, &time);
  if (found) assert_true(time.seconds > 0.99e-6 && time.seconds < 1.01e-6);
  wlmi_known_destroy(known);
  return found;
}

/* The kernel has had two other texts since. The tuner does not measure again, and the file keeps the hash of the
 * measurement, with which its id was made. */
static void an_old_export_stays_valid(void **state) {
  (void)state;
  wlm_store *store;
  wlmi_text text = {0};
  int64_t added;
  assert_status(WLM_OK, wlmi_store_open(folder_file(&folder, "old.db"), WLM_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_import_string(store, export_of_0_1, "old.jsonl", &added));
  assert_int_equal(added, 1);
  assert_true(is_known(store, NOW));
  assert_true(is_known(store, OLDER));
  assert_false(is_known(store, OTHER));
  assert_status(WLM_OK, wlmi_store_export(store, &text));
  assert_string_equal(text.data, export_of_0_1);
  wlmi_text_release(&text);
  wlmi_store_close(store);
}

/* Measurements of texts that are the same count together; the third has another source and is superseded. */
static void they_count_together(void **state) {
  (void)state;
  wlmi_measurement_record records[3];
  wlmi_cases cases;
  static char *const hashes[] = {NOW, OLDEST, OTHER};
  for (int i = 0; i < 3; i++) {
    records[i] = sample_measurement(1);
    records[i].source_hash = hashes[i];
    records[i].time_ps = 1000 + 200 * i;
    records[i].spread_ps = 1;
    records[i].made_at = 100 - i;
  }
  assert_status(WLM_OK, wlmi_cases_make(records, 3, &cases));
  assert_int_equal(cases.list[0].candidates[0].count, 2);
  assert_true(cases.list[0].candidates[0].cost == 1100);
  wlmi_cases_release(&cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_are_followed),
      cmocka_unit_test(the_shipped_list_is_sorted_and_ends),
      cmocka_unit_test(an_old_export_stays_valid),
      cmocka_unit_test(they_count_together),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
