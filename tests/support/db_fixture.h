/* Measurements to store, for the tests of db/. Include after cmocka. */
#pragma once

#include "db/store.h"
#include "support/asserts.h"
#include "support/folder.h"

/* Sample i: valid measurements with different contents. Every seventh one failed, and every eleventh one has a
 * prepared variant. Its strings stay valid until 64 further calls (slot i % 64 is used again). */
wlmi_measurement_record sample_measurement(int64_t i);

/* Stores the first `count` samples; creates the store if it does not exist. */
void put_samples(const char *path, int64_t count);
/* The same with the samples from number `first` on. */
void put_samples_from(const char *path, int64_t first, int64_t count);
/* Calls `each` for all measurements of a class (NULL = of all classes) in the order of their ids, until one call
 * does not return WLM_OK. */
typedef wlm_status (*each_measurement_fn)(void *user, const char *id, const wlmi_measurement_record *record);
wlm_status each_measurement(wlm_store *store, const char *device_class, each_measurement_fn each, void *user);
/* A callback of each_measurement that counts in an int64_t; the record must be a sample with its id. */
wlm_status must_be_sample(void *count, const char *id, const wlmi_measurement_record *record);

/* Runs statements on a database file. */
void run_sql(const char *path, const char *sql);

/* What a store has, as lines; wlm_string_free(). */
char *export_of(wlm_store *store);
/* Reads lines and adds what they have; `name` is for messages. */
wlm_status import_string(wlm_store *store, const char *text, const char *name, int64_t *added);

/* A line with sample 0 as version 0.1 exported it, without prepare_ps. */
extern const char export_of_0_1[];

/* A random number by splitmix64. */
uint64_t draw(uint64_t *state);
