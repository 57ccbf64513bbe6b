/* Public structs of other versions: shorter ones get defaults down to the first release's size, longer ones are taken
 * where their tail is zero. */
#include "core/problem/structs.h"
#include "support/test.h"
#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"
#include "warploom/warploom_tune.h"

static const wlm_context_options context_options = WLM_CONTEXT_OPTIONS_INIT;
static const wlm_csr csr = WLM_CSR_INIT;
static const wlm_coo coo = WLM_COO_INIT;
static const wlm_bsr bsr = WLM_BSR_INIT;
static const wlm_problem problem = WLM_PROBLEM_INIT;
static const wlm_execute_args execute_args = WLM_EXECUTE_ARGS_INIT;
static const wlm_attention_operands attention_operands = WLM_ATTENTION_OPERANDS_INIT;
static const wlm_message_args message_args = WLM_MESSAGE_ARGS_INIT;
static const wlm_message_table message_table = WLM_MESSAGE_TABLE_INIT;
static const wlm_matrix_options matrix_options = WLM_MATRIX_OPTIONS_INIT;
static const wlm_stats stats = WLM_STATS_INIT;
static const wlm_tune_options tune_options = WLM_TUNE_OPTIONS_INIT;
static const wlm_online_options online_options = WLM_ONLINE_OPTIONS_INIT;
static const wlm_online_state online_state = WLM_ONLINE_STATE_INIT;

/* Every public struct with its INIT macro and its init function. */
static const struct {
  const wlmi_struct *type;
  const void *initial;
  size_t size;
  wlm_status (*init)(void *to, size_t size);
} structs[] = {
#define STRUCT(name) \
  { &wlmi_struct_##name, &name, sizeof name, wlm_##name##_init }
    STRUCT(context_options),
    STRUCT(csr),
    STRUCT(coo),
    STRUCT(bsr),
    STRUCT(problem),
    STRUCT(execute_args),
    STRUCT(attention_operands),
    STRUCT(message_args),
    STRUCT(message_table),
    STRUCT(matrix_options),
    STRUCT(stats),
    STRUCT(tune_options),
    STRUCT(online_options),
    STRUCT(online_state),
};
enum { STRUCTS = sizeof structs / sizeof *structs, MORE = 24, MOST = 1024 };

/* Memory for any of the structs and a tail. */
typedef union room {
  size_t size;
  max_align_t alignment;
  char bytes[MOST];
} room;

static void set_size(room *r, size_t size) { memcpy(r->bytes, &size, sizeof size); }

static void refused(wlm_status status, int i, const char *says) {
  assert_fails(WLM_ERR_INVALID_ARGUMENT, status, structs[i].type->name);
  assert_contains(wlm_error_detail(), says);
}

TEST(every_struct_is_listed) {
  for (int i = 0; i < STRUCTS; i++) {
    assert_int_equal(structs[i].type->size, structs[i].size);
    assert_in_range(structs[i].type->first_size, sizeof(size_t), structs[i].size);
    assert_true(structs[i].size + MORE <= MOST);
    assert_memory_equal(structs[i].type->defaults, structs[i].initial, structs[i].size);
    assert_int_equal(*(const size_t *)structs[i].initial, structs[i].size);
    assert_memory_equal(structs[i].type->name, "wlm_", 4);
  }
}

TEST(tests_have_the_same_defaults) {
#define SAME(name, with)                               \
  do {                                                 \
    static const wlm_##name by_test = with();          \
    assert_memory_equal(&by_test, &name, sizeof name); \
  } while (0)
  SAME(context_options, CONTEXT_OPTIONS);
  SAME(csr, CSR);
  SAME(coo, COO);
  SAME(problem, PROBLEM);
  SAME(execute_args, EXECUTE_ARGS);
  SAME(attention_operands, ATTENTION_OPERANDS);
  SAME(matrix_options, MATRIX_OPTIONS);
  SAME(stats, STATS);
  SAME(tune_options, TUNE_OPTIONS);
  SAME(online_options, ONLINE_OPTIONS);
}

TEST(initialised_as_by_the_macro) {
  for (int i = 0; i < STRUCTS; i++) {
    const size_t size = structs[i].size, first = structs[i].type->first_size;
    room r, expected;
    memset(&r, 0x5a, sizeof r);
    assert_status(WLM_OK, structs[i].init(&r, size));
    assert_memory_equal(&r, structs[i].initial, size);
    for (size_t k = size; k < sizeof r; k++) assert_int_equal(r.bytes[k], 0x5a);

    memset(&r, 0x5a, sizeof r); /* as a newer header would fill it */
    assert_status(WLM_OK, structs[i].init(&r, size + MORE));
    memset(&expected, 0, sizeof expected);
    memcpy(&expected, structs[i].initial, size);
    set_size(&expected, size + MORE);
    assert_memory_equal(&r, &expected, size + MORE);
    assert_int_equal(r.bytes[size + MORE], 0x5a);

    memset(&r, 0x5a, sizeof r);
    expected = r;
    refused(structs[i].init(&r, first - 1), i, "size is");
    refused(structs[i].init(&r, 0), i, "size is 0");
    refused(structs[i].init(NULL, size), i, "NULL");
    assert_memory_equal(&r, &expected, sizeof r);
  }
}

TEST(read_in_any_version) {
  for (int i = 0; i < STRUCTS; i++) {
    const wlmi_struct *type = structs[i].type;
    const size_t size = structs[i].size;
    room given, read, untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    memset(&given, 0x7b, sizeof given); /* fields with values other than 0 */
    set_size(&given, size);
    read = untouched;
    assert_status(WLM_OK, wlmi_struct_read(type, &given, &read));
    assert_memory_equal(&read, &given, size);
    assert_int_equal(read.bytes[size], 0x5a);

    memset(given.bytes + size, 0, MORE); /* a newer header whose new fields are 0 */
    set_size(&given, size + MORE);
    read = untouched;
    assert_status(WLM_OK, wlmi_struct_read(type, &given, &read));
    assert_int_equal(read.size, size);
    assert_memory_equal(read.bytes + sizeof size, given.bytes + sizeof size, size - sizeof size);
    assert_int_equal(read.bytes[size], 0x5a);
    for (size_t k = size; k < size + MORE; k++) { /* a newer header with one new field set */
      given.bytes[k] = 1;
      refused(wlmi_struct_read(type, &given, &read), i, ".size is");
      given.bytes[k] = 0;
    }
    given.bytes[size + MORE] = 1; /* this byte lies behind the struct */
    assert_status(WLM_OK, wlmi_struct_read(type, &given, &read));

    read = untouched;
    static const size_t small[] = {0, 1, sizeof(size_t)};
    for (size_t k = 0; k < sizeof small / sizeof *small; k++) {
      set_size(&given, small[k]);
      refused(wlmi_struct_read(type, &given, &read), i, ".size is");
    }
    set_size(&given, type->first_size - 1);
    refused(wlmi_struct_read(type, &given, &read), i, ".size is");
    refused(wlmi_struct_read(type, NULL, &read), i, "NULL");
    assert_memory_equal(&read, &untouched, sizeof read);
  }
}

/* A struct to which later versions added `c`, and then `d`. */
typedef struct grown {
  size_t size;
  int64_t a, b, c, d;
} grown;
static const grown grown_defaults = {sizeof(grown), 1, 2, 3, 4};
static const wlmi_struct grown_type = {"wlm_grown", &grown_defaults, sizeof(grown), offsetof(grown, c)};

TEST(shorter_ones_get_defaults) {
  const grown given = {offsetof(grown, c), 10, 20, 30, 40};
  GET(grown, read, wlmi_struct_read(&grown_type, &given, &read));
  assert_true(read.size == sizeof read && read.a == 10 && read.b == 20 && read.c == 3 && read.d == 4);
  grown later = given;
  later.size = offsetof(grown, d);
  assert_status(WLM_OK, wlmi_struct_read(&grown_type, &later, &read));
  assert_true(read.size == sizeof read && read.b == 20 && read.c == 30 && read.d == 4);
  later.size = offsetof(grown, c) - 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_struct_read(&grown_type, &later, &read), "wlm_grown.size is 23");
}

TEST(present_structs_are_not_copied) {
  grown given = grown_defaults, copy = {0};
  given.a = 7;
  GET(const void *, seen, wlmi_struct_see(&grown_type, &given, &copy, &seen));
  assert_ptr_equal(seen, &given);
  given.size = offsetof(grown, c);
  given.c = 9;
  assert_status(WLM_OK, wlmi_struct_see(&grown_type, &given, &copy, &seen));
  assert_ptr_equal(seen, &copy);
  assert_true(copy.a == 7 && copy.c == 3);
  given.size = 0;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_struct_see(&grown_type, &given, &copy, &seen));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_struct_see(&grown_type, NULL, &copy, &seen));
}

/* The library fills as many bytes as the caller's size says. */
TEST(written_in_any_version) {
  const grown from = {sizeof(grown), 10, 20, 30, 40};
  union {
    grown known;
    char bytes[sizeof(grown) + MORE + 1];
  } to;
  for (size_t size = offsetof(grown, c); size <= sizeof(grown) + MORE; size += 8) {
    memset(&to, 0x5a, sizeof to);
    to.known.size = size;
    assert_status(WLM_OK, wlmi_struct_write(&grown_type, &from, &to));
    assert_int_equal(to.known.size, size);
    for (size_t k = sizeof size; k < size; k++)
      assert_int_equal(to.bytes[k], k < sizeof from ? ((const char *)&from)[k] : 0);
    for (size_t k = size; k < sizeof to.bytes; k++) assert_int_equal(to.bytes[k], 0x5a);
  }
  to.known.size = offsetof(grown, c) - 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_struct_write(&grown_type, &from, &to), "wlm_grown.size");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_struct_write(&grown_type, &from, NULL));
}

TEST(null_arguments_are_named) {
  const int there = 0;
  assert_status(WLM_OK, wlmi_need("wlm_call", "one two three", &there, &there, &there));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_need("wlm_call", "one two three", NULL, NULL, &there));
  assert_string_equal(wlm_error_detail(), "wlm_call: one is NULL");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_need("wlm_call", "one two three", &there, NULL, NULL));
  assert_string_equal(wlm_error_detail(), "wlm_call: two is NULL");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_need("wlm_call", "one two three", &there, &there, NULL));
  assert_string_equal(wlm_error_detail(), "wlm_call: three is NULL");
}
