/* From a problem and a device's limits to candidates and to source text. Hosts Lua; thread-safe (one lock). */
#ifndef WLM_GENERATOR_GENERATOR_H
#define WLM_GENERATOR_GENERATOR_H

#include "common/program.h"
#include "common/text.h"

typedef struct wlmi_generator wlmi_generator;

/* Reads the embedded templates, or those under `folder` (laid out as templates/ is) where it is not NULL.
 * WLM_ERR_TEMPLATE with file and line when a family cannot be read. */
wlm_status wlmi_generator_create(const char *folder, wlmi_generator **generator);
void wlmi_generator_destroy(wlmi_generator *generator);

/* Every family with its parameters, for people. */
wlm_status wlmi_generator_list(wlmi_generator *generator, wlmi_text *text);

/* Those of the templates; they stay as they are as long as the generator. */
const wlmi_families *wlmi_generator_families(const wlmi_generator *generator);

/* All candidates, families in alphabetical order. The generator keeps the lists of some specs, so that all but the
 * first call for a spec are look-ups. Give *list back by wlmi_candidates_drop, before the generator ends. */
wlm_status wlmi_generator_describe(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                                   const wlmi_candidate_list **list);
void wlmi_candidates_drop(const wlmi_candidate_list *list); /* NULL is fine */
/* Appends nothing where the variant is a candidate, otherwise the reason.
 * WLM_ERR_INVALID_ARGUMENT where the name cannot be understood; the detail text lists what can. */
wlm_status wlmi_generator_refusal(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                                  const wlmi_limits *limits, wlmi_text *reason);
/* Of a name, and of a variant. Release the program with wlmi_program_release. */
wlm_status wlmi_generator_emit(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                               const wlmi_limits *limits, wlmi_program *program);
wlm_status wlmi_generator_emit_variant(wlmi_generator *generator, const wlmi_variant *variant, const wlmi_spec *spec,
                                       const wlmi_limits *limits, wlmi_program *program);
/* The program that measures row statistics on a CUDA device (runtime/stats_device.h); no family either. */
wlm_status wlmi_generator_stats(wlmi_generator *generator, wlm_index rowptr_type, wlmi_program *program);
/* The program that finds the first wrong row of a matrix on a CUDA device (runtime/validate.h). */
wlm_status wlmi_generator_validate(wlmi_generator *generator, wlm_index rowptr_type, wlm_index colind_type,
                                   wlmi_program *program);
/* The program that makes A^T on a CUDA device, for the types of the spec: no family, and its launches are the caller's.
 */
wlm_status wlmi_generator_transpose(wlmi_generator *generator, const wlmi_spec *spec, wlmi_program *program);
/* The program that gives the gradients of a problem with positions: no family either; its passes clear, then scatter.
 */
wlm_status wlmi_generator_arg_backward(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                                       wlmi_program *program);

#endif
