/* The generator: lists the candidates for a problem and a device's limits, and emits their source text. It hosts Lua
 * and is thread-safe (one lock). */
#pragma once

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/problem/program.h"

typedef struct wlmi_generator wlmi_generator;

/* Reads the embedded templates, or those under `folder` (laid out as templates/ is) where it is not NULL.
 * WLM_ERR_TEMPLATE with file and line when a family cannot be read. */
wlm_status wlmi_generator_create(const char *folder, wlmi_generator **generator);
void wlmi_generator_destroy(wlmi_generator *generator);

/* A hash of the library's own templates and of the generator's Lua. */
wlmi_hash wlmi_generator_version(void);

/* What templates see of a compute capability: 80 for 80 to 89, and 100 for all above 90. */
int wlmi_generator_arch(int arch);

/* Appends every family with its parameters, for people. */
wlm_status wlmi_generator_list(wlmi_generator *generator, wlmi_text *text);

/* The families of the templates. They live as long as the generator and do not change. */
const wlmi_families *wlmi_generator_families(const wlmi_generator *generator);

/* All candidates, with families in alphabetical order. The generator keeps the lists of 64 specs, so only the first
 * call for a spec runs Lua. Release *list with wlmi_candidates_drop before the generator is destroyed. */
wlm_status wlmi_generator_describe(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                                   const wlmi_candidate_list **list);
void wlmi_candidates_drop(const wlmi_candidate_list *list); /* NULL is fine */
/* Appends why the variant is no candidate, or nothing if it is one. WLM_ERR_INVALID_ARGUMENT for an unknown name; the
 * detail text lists the valid ones. */
wlm_status wlmi_generator_refusal(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                                  const wlmi_limits *limits, wlmi_text *reason);
/* Emit the program of a variant, given by name or by value. Release it with wlmi_program_release. */
wlm_status wlmi_generator_emit(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                               const wlmi_limits *limits, wlmi_program *program);
wlm_status wlmi_generator_emit_variant(wlmi_generator *generator, const wlmi_variant *variant, const wlmi_spec *spec,
                                       const wlmi_limits *limits, wlmi_program *program);
/* Emits the program of a variant (WLMI_HELPER_NONE), or of a helper for the types of the spec, which belongs to no
 * family: `variant` is not read. The caller computes a helper's launches, but for WLMI_HELPER_GRADIENT, whose passes
 * clear the result, then scatter to it. */
wlm_status wlmi_generator_emit_program(wlmi_generator *generator, wlmi_helper helper, const wlmi_variant *variant,
                                       const wlmi_spec *spec, const wlmi_limits *limits, wlmi_program *program);
