/* From a problem and a device's limits to candidates and to source text. Hosts Lua; thread-safe (one lock). */
#ifndef WLM_GENERATOR_GENERATOR_H
#define WLM_GENERATOR_GENERATOR_H

#include "common/program.h"
#include "common/text.h"

typedef struct wlm_generator wlm_generator;

/* Reads the embedded templates, or those under `folder` (laid out as templates/ is) where it is not NULL.
 * WLM_ERR_TEMPLATE with file and line when a family cannot be read. */
wlm_status wlm_generator_create(const char *folder, wlm_generator **generator);
void wlm_generator_destroy(wlm_generator *generator);

/* Every family with its parameters, for people. */
wlm_status wlm_generator_list(wlm_generator *generator, wlm_text *text);

typedef struct wlm_names {
  char **names;
  int64_t count;
} wlm_names;
void wlm_names_release(wlm_names *names);

/* Canonical names of every valid variant, families in alphabetical order. */
wlm_status wlm_generator_candidates(wlm_generator *generator, const wlm_spec *spec, const wlm_limits *limits,
                                    wlm_names *candidates);
/* The same with what each launches; wlm_free the list. */
wlm_status wlm_generator_describe(wlm_generator *generator, const wlm_spec *spec, const wlm_limits *limits,
                                  wlm_candidate **candidates, int64_t *count);
/* Appends nothing where the variant is a candidate, otherwise the reason.
 * WLM_ERR_INVALID_ARGUMENT where the name cannot be understood; the detail text lists what can. */
wlm_status wlm_generator_refusal(wlm_generator *generator, const char *variant, const wlm_spec *spec,
                                 const wlm_limits *limits, wlm_text *reason);
/* Whether the variant, a candidate here, must be prepared before it can run. */
wlm_status wlm_generator_prepares(wlm_generator *generator, const char *variant, const wlm_spec *spec,
                                  const wlm_limits *limits, int *prepares);
/* Release the program with wlm_program_release. */
wlm_status wlm_generator_emit(wlm_generator *generator, const char *variant, const wlm_spec *spec,
                              const wlm_limits *limits, wlm_program *program);
/* The program that makes A^T on a CUDA device, for the types of the spec: no family, and its launches are the caller's.
 */
wlm_status wlm_generator_transpose(wlm_generator *generator, const wlm_spec *spec, wlm_program *program);
/* The program that gives the gradients of a problem with positions: no family either; its passes clear, then scatter.
 */
wlm_status wlm_generator_arg_backward(wlm_generator *generator, const wlm_spec *spec, const wlm_limits *limits,
                                      wlm_program *program);

#endif
