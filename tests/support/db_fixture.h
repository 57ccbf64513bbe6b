/* Measurements to store, for the tests of db/. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_DB_FIXTURE_H
#define WLM_TESTS_SUPPORT_DB_FIXTURE_H

#include "db/store.h"
#include "support/asserts.h"
#include "support/folder.h"

/* The i-th of a family of valid measurements, no two with equal content; every seventh one failed, every eleventh
 * one is of a variant that is prepared. Its strings live
 * until the next call that uses the same slot, slot = i % 64. */
wlmi_measurement_record sample_measurement(int64_t i);

/* The first `count` of them into the store, which is made where it is missing. */
void put_samples(const char *path, int64_t count);
/* Calls `each` for all measurements of a class (NULL = of all) in the order of their ids, until one is not WLM_OK. */
typedef wlm_status (*each_measurement_fn)(void *user, const char *id, const wlmi_measurement_record *record);
wlm_status each_measurement(wlm_store *store, const char *device_class, each_measurement_fn each, void *user);
/* For each_measurement with an int64_t that counts: the record is one of them, with its id. */
wlm_status must_be_sample(void *count, const char *id, const wlmi_measurement_record *record);

/* splitmix64, for tests that draw */
uint64_t draw(uint64_t *state);

#endif
