/* The table of docs/operators.md: what each family is executed with in the covering set (support/covering.h), that is,
 * by tests/simt and tests/host. Nothing is said of a family that no entry of the set shows. */
#ifndef WLM_TESTS_OPERATOR_TABLE_H
#define WLM_TESTS_OPERATOR_TABLE_H

#include "support/covering.h"

/* Markdown, a row for each family that the generator lists. */
wlm_status operator_table_write(wlmi_generator *generator, const covering sets[], int set_count, wlmi_text *table);

#endif
