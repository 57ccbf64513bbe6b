/* The main of programs without one of their own. */
#include "support/test.h"

int main(void) { return test_run(); }
