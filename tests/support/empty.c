/* keeps the library non-empty */
typedef int wlm_test_support_is_not_empty;
