/* Keys of problems: what is written is read back, and keys of other versions are refused. */
#include "core/problem/spec_key.h"
#include "select/features.h"
#include "support/test.h"

TEST(keys_are_read_back) {
  static const char *const keys[] = {
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=copy_b.max,dense=f32,rowptr=i64,colind=i32,values=none,sample=none,empty=identity",
      "op=mul.mean,dense=f32,rowptr=i32,colind=i32,values=f32,sample=fastrand:64:none",
      "op=custom{message=a*b;init=0;reduce=acc+x;combine=reduce},dense=f32,rowptr=i32,colind=i32,values=f32,sample="
      "none",
      "op=custom{message=a*b;init=0;reduce=fmax(acc,x)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=sddmm,heads=8",
      "op=copy_b.max,dense=f16,rowptr=i32,colind=i32,values=none,sample=none,operation=argmax_gradient,arg=i16",
      "op=div.mean,dense=f16,rowptr=i64,colind=i64,values=f32,sample=none,operation=sddmm",
      "op=mul.max,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,empty=identity,transpose=1",
      "op=custom{sum=relu(b+e)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message",
      "op=custom{x:row:1;k:column:1;sum=tanh(x+k)*a*b;edge_sum=x},dense=bf16,rowptr=i32,colind=i64,values=f32,sample="
      "none,operation=message,transpose=1,heads=4",
      "op=custom{mean=b;max=b;min=b},dense=f64,rowptr=i32,colind=i32,values=none,sample=none,operation=message,arg=i32",
      "op=custom{w:row:wins;sum=w},dense=f32,rowptr=i32,colind=i32,values=none,sample=none,operation=message,wins=i64",
      "op=custom{dense:row;values:row;sum=fmin(b,dense==values?1:0)},dense=f32,rowptr=i32,colind=i32,values=none,"
      "sample=none,operation=message"};
  static const char *const foreign[] = {
      "",
      "p",
      "op=mul.sum",
      "op=what.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,new=1",
      "op=mul.custom{init=0;reduce=acc+x},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=,rowptr=i32"};
  char again[WLMI_SPEC_KEY], class[WLMI_PROBLEM_CLASS];
  wlmi_spec spec;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (wlmi_spec_from_key(keys[i], 24, &spec) != WLM_OK) fail_msg("%s: %s", keys[i], wlm_error_detail());
    wlmi_spec_key(&spec, again);
    assert_string_equal(again, keys[i]);
    assert_int_equal(spec.problem.n, 24);
    assert_int_equal(wlmi_problem_has_values(keys[i]), spec.has_values);
    wlmi_problem_class(keys[i], class);
    assert_true(!strncmp(class, "dense=", 6) && strchr("fb", class[6]));
  }
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    assert_int_equal(wlmi_spec_from_key(foreign[i], 24, &spec), WLM_ERR_UNSUPPORTED);
}

/* Loaded kernels are found by the id. */
TEST(each_property_gives_another_id) {
  static const char *const keys[] = {"op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
                                     "op=mul.sum,dense=f32,rowptr=i64,colind=i32,values=f32,sample=none",
                                     "op=mul.sum,dense=f32,rowptr=i32,colind=i64,values=f32,sample=none",
                                     "op=mul.sum,dense=f16,rowptr=i32,colind=i32,values=f32,sample=none",
                                     "op=mul.sum,dense=f16,rowptr=i32,colind=i32,values=f16,sample=none",
                                     "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=none,sample=none",
                                     "op=div.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
                                     "op=mul.max,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
                                     "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,heads=8",
                                     "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=bucket:64:none",
                                     "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,transpose=1"};
  enum { KEYS = sizeof keys / sizeof *keys };
  wlmi_hash ids[KEYS];
  for (int i = 0; i < KEYS; i++) {
    GET(wlmi_spec, spec, wlmi_spec_from_key(keys[i], 24, &spec));
    ids[i] = wlmi_spec_id(&spec);
    for (int j = 0; j < i; j++)
      if (!memcmp(&ids[i], &ids[j], sizeof *ids)) fail_msg("%s and %s have one id", keys[i], keys[j]);
  }
}
