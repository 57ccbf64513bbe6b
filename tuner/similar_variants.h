/* Which variants for two types are one idea. */
#ifndef WLM_TUNER_SIMILAR_VARIANTS_H
#define WLM_TUNER_SIMILAR_VARIANTS_H

/* The same family and parameters, where vectors of more or fewer elements go with as many lanes, or with as many
 * columns under all lanes: row_vec/lanes=8,vector=4,batch=4 of f32 is similar to lanes=8,vector=8 and lanes=4,vector=8
 * of f16. For types of one size a variant is similar to itself alone. */
int wlmi_variants_are_similar(const char *a, const char *b);

int wlmi_same_family(const char *a, const char *b); /* of two variants */

#endif
