/* The one list of a measurement's fields. The canonical JSON, the reader of JSON lines, the SQL of every statement, the
 * binding of its parameters, the reading of its rows and the checks of single values are made from it. So a new field
 * is added here, in the struct and as a step of db/schema.c; tests/db/test_record.c compares all three. */
#pragma once

#include "core/base/hash.h"
#include "core/problem/measurement.h"

/* The store's tables. The fields of a table are adjacent, and tables are in this order. */
typedef enum wlmi_field_table {
  WLMI_TABLE_DEVICE,
  WLMI_TABLE_MATRIX,
  WLMI_TABLE_VARIANT,
  WLMI_TABLE_MEASUREMENT,
  WLMI_TABLE_COUNT
} wlmi_field_table;

/* Sets of fields, a bit each. */
#define WLM_OF(table) (1u << (table))
enum {
  WLMI_OF_ALL = (1 << WLMI_TABLE_COUNT) - 1, /* of a measurement */
  WLMI_OF_RECORDED = WLMI_OF_ALL + 1,        /* of a recorded problem, whose matrix has no name */
  WLMI_OF_CHOICE = 2 * WLMI_OF_RECORDED      /* of the table measurement, what a choice is made from */
};

typedef enum wlmi_field_type {
  WLMI_FIELD_TEXT,          /* char * */
  WLMI_FIELD_INT,           /* int */
  WLMI_FIELD_INT64,         /* int64_t */
  WLMI_FIELD_INT64_OR_NONE, /* int64_t; 0 is left out of the line */
  WLMI_FIELD_REAL,          /* double, finite */
  WLMI_FIELD_REAL_OR_NULL,  /* double; null stands for not a number */
  WLMI_FIELD_BOOL,          /* int, false or true */
  WLMI_FIELD_HASH           /* uint64_t[2], as 32 hexadecimal digits */
} wlmi_field_type;

typedef struct wlmi_field {
  const char *key, *column; /* in JSON and in SQL */
  unsigned of;              /* the sets that it belongs to */
  wlmi_field_type type;
  size_t offset;       /* in wlmi_measurement_record */
  int64_t least, most; /* bounds of a number, or of a text's length */
  const char *must_be; /* the rule in words */
} wlmi_field;

/* The most bytes of a text; names, keys and messages have 4,096 or less. */
enum { WLMI_LONGEST_TEXT = 16 << 10 };

enum { WLMI_FIELD_COUNT = 32 };
extern const wlmi_field wlmi_fields[WLMI_FIELD_COUNT];

/* Values by field. The caller knows the type; integers cover int, int64 and bool. */
const char *wlmi_field_text(const wlmi_field *field, const wlmi_measurement_record *record); /* never NULL */
int64_t wlmi_field_integer(const wlmi_field *field, const wlmi_measurement_record *record);
double wlmi_field_real(const wlmi_field *field, const wlmi_measurement_record *record);
wlmi_hash wlmi_field_hash(const wlmi_field *field, const wlmi_measurement_record *record);
/* Setters. They return 0 for an integer that does not fit or a text that is no hash, otherwise 1. */
void wlmi_field_set_text(const wlmi_field *field, wlmi_measurement_record *record, char *text); /* keeps the pointer */
int wlmi_field_set_integer(const wlmi_field *field, wlmi_measurement_record *record, int64_t value);
void wlmi_field_set_real(const wlmi_field *field, wlmi_measurement_record *record, double value);
int wlmi_field_set_hash(const wlmi_field *field, wlmi_measurement_record *record, const char *hex);

/* Whether the value is valid by itself, without regard to other fields. */
int wlmi_field_is_possible(const wlmi_field *field, const wlmi_measurement_record *record);
void wlmi_field_json(const wlmi_field *field, const wlmi_measurement_record *record, wlmi_text *out); /* ,"key":value */

/* Fills what follows from other fields (stats.size, stats.mean) once all are set. */
void wlmi_fields_derive(wlmi_measurement_record *record);
