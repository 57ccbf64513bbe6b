/* keeps the library non-empty */
typedef int wlmi_test_support_is_not_empty;
