/* Variables that release what they hold where their block ends, the last one first. A test that fails leaves its block
 * without releasing them. */
#pragma once

#include <sqlite3.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "db/kernel_archive.h"
#include "db/kernel_cache.h"
#include "db/store.h"
#include "generator/generator.h"
#include "runtime/dispatch/device.h"
#include "support/asserts.h"

/* A struct with a function TYPE_release: HELD(wlmi_text) text = {0}; */
#define HELD(type) __attribute__((cleanup(type##_release))) type
/* One with a function TYPE_clear: CLEARED(wlmi_snapshot) snapshot = {0}; */
#define CLEARED(type) __attribute__((cleanup(type##_clear))) type
/* One with a function TYPE_make, too: MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16); */
#define MAKE(type, name, ...) \
  HELD(type) name;            \
  type##_make(&name, ##__VA_ARGS__)
/* The same as the result of a call: HOLD(wlmi_program, program, wlmi_emit(generator, &spec, name, &program)); */
#define HOLD(type, name, call) \
  HELD(type) name;             \
  assert_status(WLM_OK, call)
/* A pointer to an object of one of the types below, or NULL: OWNED(wlm_store) *store = NULL; */
#define OWNED(type) __attribute__((cleanup(drop_##type))) type
/* The same as the result of a call: OWN(wlm_plan, plan, wlm_plan_create(context, matrix, &problem, &plan)); */
#define OWN(type, name, call) \
  OWNED(type) *name = NULL;   \
  assert_status(WLM_OK, call)
/* A pointer to memory of malloc, and to memory of the library such as its strings. */
#define FREED     __attribute__((cleanup(drop_memory)))
#define WLM_FREED __attribute__((cleanup(drop_library_memory)))

static inline void drop_memory(void *pointer) { free(*(void **)pointer); }
static inline void drop_library_memory(void *pointer) { wlmi_free(*(void **)pointer); }
static inline void drop_wlm_context(wlm_context **context) { wlm_context_destroy(*context); }
static inline void drop_wlm_matrix(wlm_matrix **matrix) { wlm_matrix_destroy(*matrix); }
static inline void drop_wlmi_device(wlmi_device **device) {
  if (*device) (*device)->ops->close(*device);
}
static inline void drop_wlm_plan(wlm_plan **plan) { wlm_plan_destroy(*plan); }
static inline void drop_wlm_store(wlm_store **store) { wlmi_store_close(*store); }
static inline void drop_wlmi_kernel_cache(wlmi_kernel_cache **cache) { wlmi_kernel_cache_close(*cache); }
static inline void drop_wlmi_generator(wlmi_generator **generator) { wlmi_generator_destroy(*generator); }
static inline void drop_wlmi_kernel_archive(wlmi_kernel_archive **archive) { wlmi_kernel_archive_close(*archive); }
static inline void drop_wlmi_hasher(wlmi_hasher **hasher) { wlmi_hasher_destroy(*hasher); }
typedef const wlmi_candidate_list wlmi_candidates;
static inline void drop_wlmi_candidates(wlmi_candidates **list) { wlmi_candidates_drop(*list); }
/* Names of runtime/decisions.h and tuner/verify.h, which clash with those of db/. */
typedef struct wlmi_decided wlmi_decided;
void wlmi_decided_drop(wlmi_decided *decided);
static inline void drop_wlmi_decided(wlmi_decided **decided) { wlmi_decided_drop(*decided); }
typedef struct wlmi_verifier wlmi_verifier;
void wlmi_verifier_destroy(wlmi_verifier *verifier);
static inline void drop_wlmi_verifier(wlmi_verifier **verifier) { wlmi_verifier_destroy(*verifier); }
static inline void drop_sqlite3(sqlite3 **database) { sqlite3_close(*database); }
