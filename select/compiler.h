/* Compilers as the store knows them: "nvrtc 13.0", "cc 12.2.0 -O3". A program's name, its version, then what else. */
#ifndef WLM_SELECT_COMPILER_H
#define WLM_SELECT_COMPILER_H

/* Whether both are versions of one program: what stands before the first digit is the same. NULL is "". */
int wlmi_compiler_same(const char *a, const char *b);
/* By the numbers of the version alone, so that 12.10 is newer than 12.9: negative, 0 or positive. */
int wlmi_compiler_compare(const char *a, const char *b);

#endif
