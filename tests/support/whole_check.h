/* Results of problems that count as too large to compare all of them with float64. The cases are small, and have every
 * output of every operation. Include after cmocka. */
#pragma once

int whole_check_begin(const char *device); /* 0 = it went well */
void whole_check_end(void);

/* One wrong element is found in every output, also in rows that are not compared with float64 in any case. */
void whole_check_finds_one_wrong_element(void);
/* Every output has a guard zone, and begins a call with poison. */
void whole_check_guards_and_poison(void);
/* A kernel in f64 and the float64 reference give the same numbers. */
void whole_check_references_agree(void);
/* On every GPU a simple kernel serves what these cases compute in f64. */
void whole_check_simple_kernels(void);
/* Of the host device: the log says that there is no second reference, and how many rows are compared. */
void whole_check_without_compiler(void);
