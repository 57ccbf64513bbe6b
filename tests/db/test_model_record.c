/* Models in a store: one for each class and name, a new one replaces the old one, bytes are unchanged. */
#include "support/db_fixture.h"
#include "support/test.h"

static wlm_store *open_store(wlmi_store_mode mode) {
  GET(wlm_store *, store, wlmi_store_open(folder_file(&folder, "tuned.db"), mode, &store));
  return store;
}

static void put(wlm_store *store, const char *device_class, const char *name, int64_t made_at, const void *data,
                size_t size) {
  const wlmi_model_record record = {(char *)name, made_at, (void *)data, size};
  assert_int_equal(wlmi_store_put_model(store, device_class, &record), WLM_OK);
}

TEST(models_come_back_by_class) {
  static const char bytes[] = {0, 1, 2, 0, (char)0xff, 'x'};
  wlmi_model_record *records;
  OWNED(wlm_store) *store = open_store(WLMI_STORE_WRITE);
  put(store, "cuda/a", "second", 5, "two", 3);
  put(store, "cuda/a", "first", 7, "old", 3);
  put(store, "cuda/a", "first", 8, bytes, sizeof bytes);
  put(store, "cuda/b", "first", 9, "", 0);
  wlmi_store_close(store);

  store = open_store(WLMI_STORE_READ);
  GET(int64_t, count, wlmi_store_load_models(store, "cuda/a", &records, &count));
  assert_int_equal(count, 2);
  assert_string_equal(records[0].name, "first");
  assert_int_equal(records[0].made_at, 8);
  assert_int_equal(records[0].size, sizeof bytes);
  assert_memory_equal(records[0].data, bytes, sizeof bytes);
  assert_string_equal(records[1].name, "second");
  wlmi_model_records_free(records, count);
  assert_int_equal(wlmi_store_load_models(store, "cuda/b", &records, &count), WLM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(records[0].size, 0);
  wlmi_model_records_free(records, count);
  assert_int_equal(wlmi_store_load_models(store, "cuda/c", &records, &count), WLM_OK);
  assert_int_equal(count, 0);
  wlmi_model_records_free(records, count);
  const wlmi_model_record fresh = {"x", 1, "x", 1};
  assert_int_equal(wlmi_store_put_model(store, "cuda/a", &fresh), WLM_ERR_INVALID_ARGUMENT); /* opened for reading */
}

GROUP(folder_begin, folder_end)
