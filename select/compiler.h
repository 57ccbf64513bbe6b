/* Compares compilers as the store names them: "nvrtc 13.0", "x86_64-conda-linux-gnu-cc (Anaconda gcc) 11.4.0 -O3". A
 * text is the program's name, its version (which begins a word), then flags. */
#pragma once

/* 1 if both are versions of one program: the text before the version is equal, apart from a version in the program's
 * name ("gcc-12" and "gcc-13"). NULL is "". */
int wlmi_compiler_same(const char *a, const char *b);
/* By the numbers of the version alone, so that 12.10 is newer than 12.9: negative, 0 or positive. */
int wlmi_compiler_compare(const char *a, const char *b);
