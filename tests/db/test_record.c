/* Canonical lines, ids and the checks of single records. */
#include "core/records/fields.h"
#include "core/records/lines.h"
#include "core/records/record.h"
#include "db/schema.h"
#include "db/sqlite_util.h"
#include "support/db_fixture.h"
#include "support/test.h"

TEST(the_canonical_line_is_pinned) {
  wlmi_measurement_record record = sample_measurement(0);
  HELD(wlmi_text) line = {0};
  char id[WLMI_HASH_HEX];
  wlmi_measurement_line(&record, &line);
  assert_string_equal(
      line.data,
      "{\"id\":\"08229801440761ae5c3df0becffe6ab0\","
      "\"device_kind\":\"cuda\",\"device_arch\":\"sm_90\",\"device_name\":\"NVIDIA H200\",\"device_processors\":132,"
      "\"device_memory_bytes\":150000000000,\"matrix_name\":\"matrix \\\"0\\\"\\t\\\\\u00e9\","
      "\"fingerprint\":\"00000000000000110000000000000012\",\"rows\":1000,\"cols\":900,\"nnz\":7000,\"longest\":300,"
      "\"empty_rows\":3,\"rows_le_4\":40,\"rows_le_16\":900,\"cv\":0.3333333333333333,"
      "\"top_share\":0.1,\"variant\":\"row_crc/cf=1,rows=1\",\"source_hash\":\"00000000000000000000000000abcdef\","
      "\"problem\":\"op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none\",\"n\":32,"
      "\"compiler\":\"nvrtc 13.0\",\"driver\":\"580.65\",\"clock\":\"hot\",\"time_ps\":1000000,\"spread_ps\":1000,"
      "\"samples\":9,\"calls_per_sample\":100,\"max_rel_err\":1.2345678901234566e-07,\"failed\":false,\"reason\":\"\","
      "\"made_at\":1700000000}");
  assert_status(WLM_OK, wlmi_measurement_id(&record, id));
  assert_string_equal(id, "08229801440761ae5c3df0becffe6ab0");
  char *members = strstr(line.data, ",\"device_kind\""), hex[WLMI_HASH_HEX];
  *members = '{';
  wlmi_hash_to_hex(wlmi_hash_text(members), hex);
  assert_string_equal(id, hex);
}

/* The canonical line has prepare_ps only if it is not 0, so ids made before the field existed stay valid. */
TEST(prepare_ps_is_in_the_line_if_not_0) {
  wlmi_measurement_record record = sample_measurement(0);
  HELD(wlmi_text) line = {0};
  record.prepare_ps = 2500;
  wlmi_measurement_line(&record, &line);
  assert_contains(line.data, "\"spread_ps\":1000,\"prepare_ps\":2500,\"samples\":9,");
}

TEST(every_field_is_part_of_the_id) {
  wlmi_measurement_record record = sample_measurement(0);
  char before[WLMI_HASH_HEX], after[WLMI_HASH_HEX];
  assert_status(WLM_OK, wlmi_measurement_id(&record, before));
  for (int i = 0; i < WLMI_FIELD_COUNT; i++) {
    wlmi_measurement_record changed = record;
    const wlmi_field *field = &wlmi_fields[i];
    switch (field->type) {
      case WLMI_FIELD_TEXT: wlmi_field_set_text(field, &changed, "another"); break;
      case WLMI_FIELD_REAL:
      case WLMI_FIELD_REAL_OR_NULL:
        wlmi_field_set_real(field, &changed, nextafter(wlmi_field_real(field, &record), 1));
        break;
      case WLMI_FIELD_HASH: assert_int_equal(1, wlmi_field_set_hash(field, &changed, before)); break;
      default: wlmi_field_set_integer(field, &changed, wlmi_field_integer(field, &record) + 1);
    }
    assert_status(WLM_OK, wlmi_measurement_id(&changed, after));
    if (!strcmp(before, after)) fail_msg("%s does not change the id", field->key);
  }
}

/* Whether the list has a field, or the derived members of stats, at this byte of a record. */
static int is_listed(size_t byte) {
  const size_t stats = offsetof(wlmi_measurement_record, stats);
  const size_t derived[] = {stats + offsetof(wlm_stats, size), stats + offsetof(wlm_stats, mean)};
  static const size_t sizes[] = {[WLMI_FIELD_TEXT] = sizeof(char *),
                                 [WLMI_FIELD_INT] = sizeof(int),
                                 [WLMI_FIELD_INT64] = sizeof(int64_t),
                                 [WLMI_FIELD_REAL] = sizeof(double),
                                 [WLMI_FIELD_INT64_OR_NONE] = sizeof(int64_t),
                                 [WLMI_FIELD_REAL_OR_NULL] = sizeof(double),
                                 [WLMI_FIELD_BOOL] = sizeof(int),
                                 [WLMI_FIELD_HASH] = 2 * sizeof(uint64_t)};
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (byte >= wlmi_fields[i].offset && byte < wlmi_fields[i].offset + sizes[wlmi_fields[i].type]) return 1;
  return (byte >= derived[0] && byte < derived[0] + 8) || (byte >= derived[1] && byte < derived[1] + 8);
}

/* What is not listed is padding: the second half of eight bytes whose first half is an int. */
TEST(the_list_has_all_of_the_struct) {
  for (size_t byte = 0; byte < sizeof(wlmi_measurement_record); byte++)
    if (!is_listed(byte) && (byte % 8 < 4 || !is_listed(byte - 4))) fail_msg("byte %zu is in no field", byte);
}

/* The columns of a table that are no keys, each after a comma. */
static void columns_of(sqlite3 *db, const char *table, wlmi_text *names) {
  static const char *const keys[] = {"id", "class", "device", "matrix", "variant"};
  int more;
  GET(sqlite3_stmt *, row, wlmi_sqlite_prepare(db, "SELECT name FROM pragma_table_info(?1) ORDER BY name", &row));
  wlmi_sqlite_bind_text(row, 1, table);
  for (;;) {
    assert_status(WLM_OK, wlmi_sqlite_step(row, &more));
    if (!more) break;
    int key = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) key |= !strcmp(keys[i], wlmi_sqlite_text(row, 0));
    if (!key) wlmi_text_printf(names, ",%s", wlmi_sqlite_text(row, 0));
  }
  sqlite3_finalize(row);
}

static int compare_columns(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

TEST(the_list_has_all_columns_of_the_schema) {
  static const struct {
    const char *table;
    unsigned of;
  } tables[] = {{"device", WLM_OF(WLMI_TABLE_DEVICE)},
                {"matrix", WLM_OF(WLMI_TABLE_MATRIX)},
                {"variant", WLM_OF(WLMI_TABLE_VARIANT)},
                {"measurement", WLM_OF(WLMI_TABLE_MEASUREMENT)},
                {"recorded", WLMI_OF_RECORDED}};
  OWNED(sqlite3) *db = NULL;
  assert_int_equal(SQLITE_OK, sqlite3_open(":memory:", &db));
  for (int step = 0; step < wlmi_schema_tuned.version; step++)
    assert_status(WLM_OK, wlmi_sqlite_run(db, wlmi_schema_tuned.steps[step]));
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    const char *listed[WLMI_FIELD_COUNT];
    HELD(wlmi_text) found = {0}, expected = {0};
    size_t count = 0;
    for (int i = 0; i < WLMI_FIELD_COUNT; i++)
      if (wlmi_fields[i].of & tables[t].of) listed[count++] = wlmi_fields[i].column;
    qsort(listed, count, sizeof *listed, compare_columns);
    for (size_t i = 0; i < count; i++) wlmi_text_printf(&expected, ",%s", listed[i]);
    columns_of(db, tables[t].table, &found);
    assert_string_equal(found.data, expected.data);
  }
}

TEST(missing_text_equals_empty_text) {
  wlmi_measurement_record record = sample_measurement(0), other = record;
  char a[WLMI_HASH_HEX], b[WLMI_HASH_HEX];
  record.driver = NULL;
  other.driver = "";
  assert_status(WLM_OK, wlmi_measurement_id(&record, a));
  assert_status(WLM_OK, wlmi_measurement_id(&other, b));
  assert_string_equal(a, b);
  other.stats.mean = 99; /* the mean follows from the other fields, so it is not in the id */
  other.failed = 0;
  assert_status(WLM_OK, wlmi_measurement_id(&other, b));
  assert_string_equal(a, b);
}

/* Parsing inverts printing; tests/unit/test_locale.c has the same with a decimal comma. */
TEST(reals_survive_print_and_parse) {
  uint64_t seed = 1;
  wlmi_measurement_record record = sample_measurement(0);
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = draw(&seed);
    const wlmi_content written = {.records = &record, .count = 1};
    HELD(wlmi_text) text = {0};
    memcpy(&record.max_rel_err, &bits, sizeof bits);
    if (!(record.max_rel_err >= 0 && record.max_rel_err < 1e18)) continue;
    assert_status(WLM_OK, wlmi_lines_write(&written, &text));
    HOLD(wlmi_content, read, wlmi_lines_read_string(text.data, "x", &read));
    assert_true(read.count == 1 && read.records->max_rel_err == record.max_rel_err);
  }
}

TEST(copies_own_their_strings) {
  wlmi_measurement_record record = sample_measurement(6), copy;
  char a[WLMI_HASH_HEX], b[WLMI_HASH_HEX];
  record.driver = NULL;
  assert_status(WLM_OK, wlmi_measurement_copy(&record, &copy));
  assert_true(copy.variant != record.variant);
  assert_string_equal(copy.driver, "");
  assert_status(WLM_OK, wlmi_measurement_id(&record, a));
  assert_status(WLM_OK, wlmi_measurement_id(&copy, b));
  assert_string_equal(a, b);
  wlmi_measurement_release(&copy);
  wlmi_measurement_release(&copy); /* releasing a zeroed record does nothing */
}

TEST(impossible_records_are_named) {
  enum { SUCCESS = 0, FAILURE = 6 };
#define CASE(base, change, message)                                      \
  {                                                                      \
    wlmi_measurement_record r = sample_measurement(base);                \
    change;                                                              \
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_measurement_check(&r)); \
    assert_contains(wlm_error_detail(), message);                        \
  }
  CASE(SUCCESS, r.time_ps = 0, "time_ps must be a positive integer");
  CASE(SUCCESS, r.time_ps = -5, "time_ps must be a positive integer");
  CASE(SUCCESS, r.spread_ps = -1, "spread_ps must be an integer of at least 0");
  CASE(SUCCESS, r.prepare_ps = -1, "prepare_ps must be an integer of at least 0");
  CASE(FAILURE, r.prepare_ps = 5, "must be 0 where failed is true");
  CASE(SUCCESS, r.samples = 0, "samples must be a positive integer");
  CASE(SUCCESS, r.calls_per_sample = 0, "calls_per_sample must be a positive integer");
  CASE(SUCCESS, r.max_rel_err = (double)NAN, "max_rel_err must be a number of at least 0");
  CASE(SUCCESS, r.max_rel_err = (double)INFINITY, "max_rel_err must be a number of at least 0");
  CASE(SUCCESS, r.max_rel_err = -1e-9, "max_rel_err must be a number of at least 0");
  CASE(SUCCESS, r.reason = "why", "reason must be empty");
  CASE(SUCCESS, r.version = "", "source_hash must be 32");
  CASE(SUCCESS, r.version = "0123", "source_hash must be 32");
  CASE(SUCCESS, r.variant = NULL, "variant must be a string that is not empty");
  CASE(SUCCESS, r.problem = "", "problem must be a string that is not empty");
  CASE(SUCCESS, r.matrix_name = "\xff.mtx", "matrix_name must be a string of valid UTF-8");
  CASE(SUCCESS, r.matrix_name = "\xed\xa0\x80", "matrix_name must be a string of valid UTF-8");
  CASE(SUCCESS, r.matrix_name = "\xc0\x80", "matrix_name must be a string of valid UTF-8");
  CASE(SUCCESS, r.matrix_name = "\xf0\x9f\x98", "matrix_name must be a string of valid UTF-8");
  CASE(SUCCESS, r.device.processors = 0, "device_processors must be a positive integer");
  CASE(SUCCESS, r.clock = "warm", "clock must be hot, cold, online or empty");
  CASE(SUCCESS, r.clock = "Hot", "clock must be hot, cold, online or empty");
  CASE(FAILURE, r.clock = "warm", "clock must be hot, cold, online or empty");
  CASE(SUCCESS, r.made_at = -1, "made_at must be seconds since 1970");
  CASE(SUCCESS, r.made_at = 253402300800, "made_at must be seconds since 1970");
  CASE(SUCCESS, r.made_at = INT64_MAX, "made_at must be seconds since 1970");
  CASE(SUCCESS, r.n = -1, "n must be an integer from 0 to 576460752303423487");
  CASE(SUCCESS, r.stats.cv = (double)NAN, "cv must be a number of at least 0");
  CASE(SUCCESS, r.stats.top_share = 1.5, "top_share must be a number from 0 to 1");
  CASE(SUCCESS, r.stats.longest = r.stats.nnz + 1, "longest must not be greater than nnz");
  CASE(SUCCESS, r.stats.rows_le_4 = r.stats.rows + 1, "rows_le_16 <= rows must hold");
  CASE(FAILURE, r.time_ps = 5, "must be 0 where failed is true");
  CASE(FAILURE, r.reason = NULL, "reason must be a string that is not empty where failed is true");
#undef CASE
  wlmi_measurement_record good = sample_measurement(SUCCESS), bad = sample_measurement(FAILURE);
  assert_status(WLM_OK, wlmi_measurement_check(&good));
  assert_status(WLM_OK, wlmi_measurement_check(&bad));
  bad.version = bad.clock = NULL;
  good.clock = WLMI_CLOCK_ONLINE;
  good.made_at = 253402300799;
  good.matrix_name = "\xf0\x9f\x98\x80 \u00e9"; /* a character outside of Unicode's basic plane */
  assert_status(WLM_OK, wlmi_measurement_check(&good));
  assert_status(WLM_OK, wlmi_measurement_check(&bad));
}
