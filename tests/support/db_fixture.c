#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/records/lines.h"
#include "db/interchange.h"
#include "support/db_fixture.h"
#include "support/own.h"

enum { FIRST_MADE_AT = 1700000000, SLOTS = 64 };

wlmi_measurement_record sample_measurement(int64_t i) {
  static struct { char variant[64], source[WLMI_HASH_HEX], matrix[64]; } slots[SLOTS];
  int slot = (int)(i % SLOTS), failed = i % 7 == 6;
  snprintf(slots[slot].variant, sizeof slots[slot].variant, "row_crc/cf=%d,rows=%d", 1 << i % 4, 1 << i / 4 % 5);
  snprintf(slots[slot].source, sizeof slots[slot].source, "%032llx", 0xabcdefull + (unsigned long long)(i % 20));
  snprintf(slots[slot].matrix, sizeof slots[slot].matrix, "matrix \"%lld\"\t\\\u00e9", (long long)(i % 5));
  int64_t rows = 1000 + i % 5;
  wlmi_measurement_record record = {
      .device = {"NVIDIA H200", "cuda", "sm_90", 132, 150000000000},
      .matrix_name = slots[slot].matrix,
      .stats = {sizeof(wlm_stats), rows, 900, 7 * rows, 300, 3, 40, 900, 7, 1.0 / 3 + (double)(i % 5), 0.1, {17, 18}},
      .variant = slots[slot].variant,
      .version = slots[slot].source,
      .problem = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      .n = 32 << i % 3,
      .compiler = "nvrtc 13.0",
      .driver = "580.65",
      .clock = "hot",
      .time_ps = failed ? 0 : 1000000 + i,
      .spread_ps = failed ? 0 : 1000,
      .prepare_ps = failed || i % 11 != 5 ? 0 : 3000000 + i,
      .samples = 9,
      .calls_per_sample = 100,
      .max_rel_err = failed ? strtod("nan", NULL) : 1.2345678901234567e-7,
      .failed = failed,
      .reason = failed ? "the launch failed:\n  out of registers" : "",
      .made_at = FIRST_MADE_AT + i};
  record.stats.fingerprint[0] += (uint64_t)(i % 5);
  return record;
}

void put_samples_from(const char *path, int64_t first, int64_t count) {
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  for (int64_t begin = 0; begin < count; begin += SLOTS) {
    wlmi_measurement_record records[SLOTS];
    const int64_t size = count - begin < SLOTS ? count - begin : SLOTS;
    for (int64_t i = 0; i < size; i++) records[i] = sample_measurement(first + begin + i);
    assert_status(WLM_OK, wlmi_store_put(store, records, size));
  }
}

void put_samples(const char *path, int64_t count) { put_samples_from(path, 0, count); }

void run_sql(const char *path, const char *sql) {
  OWNED(sqlite3) *db = NULL;
  assert_int_equal(SQLITE_OK, sqlite3_open(path, &db));
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

char *export_of(wlm_store *store) {
  wlmi_text out = {0};
  assert_status(WLM_OK, wlmi_store_export(store, &out));
  GET(char *, text, wlmi_text_take(&out, &text));
  return text;
}

wlm_status each_measurement(wlm_store *store, const char *device_class, each_measurement_fn each, void *user) {
  wlmi_measurement_record *records;
  int64_t count;
  char id[WLMI_HASH_HEX];
  wlm_status status = wlmi_store_load(store, device_class, &records, &count);
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    assert_status(WLM_OK, wlmi_measurement_id(&records[i], id));
    status = each(user, id, &records[i]);
  }
  wlmi_measurements_free(records, count);
  return status;
}

wlm_status must_be_sample(void *count, const char *id, const wlmi_measurement_record *record) {
  char expected[WLMI_HASH_HEX];
  const int64_t number = record->made_at - FIRST_MADE_AT;
  ++*(int64_t *)count;
  assert_in_range(number, 0, 1 << 20);
  wlmi_measurement_record sample = sample_measurement(number);
  assert_status(WLM_OK, wlmi_measurement_id(&sample, expected));
  assert_string_equal(id, expected);
  return WLM_OK;
}

uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

const char export_of_0_1[] =
    "{\"warploom\":\"tuned\",\"version\":1}\n"
    "{\"id\":\"08229801440761ae5c3df0becffe6ab0\",\"device_kind\":\"cuda\",\"device_arch\":\"sm_90\","
    "\"device_name\":\"NVIDIA H200\",\"device_processors\":132,\"device_memory_bytes\":150000000000,"
    "\"matrix_name\":\"matrix \\\"0\\\"\\t\\\\\u00e9\",\"fingerprint\":\"00000000000000110000000000000012\","
    "\"rows\":1000,\"cols\":900,\"nnz\":7000,\"longest\":300,\"empty_rows\":3,\"rows_le_4\":40,\"rows_le_16\":900,"
    "\"cv\":0.3333333333333333,\"top_share\":0.1,\"variant\":\"row_crc/cf=1,rows=1\","
    "\"source_hash\":\"00000000000000000000000000abcdef\","
    "\"problem\":\"op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none\",\"n\":32,"
    "\"compiler\":\"nvrtc 13.0\",\"driver\":\"580.65\",\"clock\":\"hot\",\"time_ps\":1000000,\"spread_ps\":1000,"
    "\"samples\":9,\"calls_per_sample\":100,\"max_rel_err\":1.2345678901234566e-07,\"failed\":false,\"reason\":\"\","
    "\"made_at\":1700000000}\n";

wlm_status import_string(wlm_store *store, const char *text, const char *name, int64_t *added) {
  HELD(wlmi_content) content;
  wlm_status status = wlmi_lines_read_string(text, name, &content);
  if (status == WLM_OK) status = wlmi_store_import(store, &content, added);
  return status;
}
