/* Matches variants for types of different size. */
#pragma once

/* 1 if both have the same family and parameters, except that vectors may have more or fewer elements, with equal lanes
 * or with equal columns for all lanes together. row_vec/lanes=8,vector=4,batch=4 of f32 is similar to lanes=8,vector=8
 * and lanes=4,vector=8 of f16. For types of equal size only equal variants are similar. */
int wlmi_variants_are_similar(const char *a, const char *b);

int wlmi_same_family(const char *a, const char *b); /* 1 if two variants have the same family */
