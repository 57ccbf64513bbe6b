/* Makes the table of docs/operators.md from the covering set (support/covering.h): what tests/simt and tests/host
 * execute each family with. A property that no entry of the set has is not listed. */
#pragma once

#include "support/covering.h"

/* Writes a Markdown table with a row for each family that the generator lists. */
wlm_status operator_table_write(wlmi_generator *generator, const covering sets[], int set_count, wlmi_text *table);
