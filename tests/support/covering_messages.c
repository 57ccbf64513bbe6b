#include "support/covering_messages.h"
#include "support/defaults.h"

#define SAMPLED(sample, norm, width) \
  { WLM_SAMPLE_##sample, WLM_NORM_##norm, width }
#define ALL SAMPLED(NONE, NONE, 0)

const covering_message covering_messages[] = {
    {"sum=relu(b+e)", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 128, 1, 0, 0, 0, WLM_I32, ALL},
    {"sum=relu(b+e);prod=b", WLM_F16, WLM_F16, WLM_I64, WLM_I32, 64, 1, 0, 1, 0, WLM_I32, ALL},
    {"mean=b;max=b;min=b;sum=b*b", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 1, 0, 0, 1, WLM_I32, ALL},
    {"mean=b;max=b;min=b", WLM_F16, WLM_F16, WLM_I32, WLM_I32, 128, 1, 0, 0, 1, WLM_I32, ALL},
    {"mean=b*e;max=b*e;min=b*e;sum=b*e*b*e", WLM_BF16, WLM_BF16, WLM_I64, WLM_I64, 40, 1, 0, 1, 1, WLM_I32, ALL},
    {"max=b;min=e*a", WLM_F64, WLM_F64, WLM_I32, WLM_I64, 36, 2, 1, 1, 1, WLM_I64, ALL},
    {"sum=sigmoid(x+k)*b;edge=x*b", WLM_F32, WLM_F32, WLM_I64, WLM_I64, 100, 1, 0, 0, 0, WLM_I32, ALL},
    {"d0:row;sum=d0*b*sigmoid(x+k)*(1-sigmoid(x+k));sum=d0*sigmoid(x+k)", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 128, 1, 0,
     1, 0, WLM_I32, ALL},
    {"x:row:1;k:column:1;sum=tanh(x+k)*a*b", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 1, 1, 1, 0, WLM_I32, ALL},
    {"g:row:heads;k:column:heads;sum=g*k*a*b;edge_sum=x*b", WLM_F32, WLM_F32, WLM_I32, WLM_I64, 64, 8, 1, 0, 0, WLM_I32,
     ALL},
    {"edge_sum=x*b*a*degree;sum=y", WLM_BF16, WLM_F32, WLM_I32, WLM_I32, 96, 4, 1, 0, 0, WLM_I32, ALL},
    {"h:edge:heads;f:edge:1;s:all:1;v:all;w:all:heads;sum=(b*h+v)*s*w*a*f", WLM_F64, WLM_F64, WLM_I64, WLM_I32, 66, 3,
     1, 0, 0, WLM_I32, ALL},
    {"d:row;w:row:wins;sum=d*w;edge=d*w/degree", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 33, 1, 0, 1, 0, WLM_I32, ALL},
    {"d:row;w:row:wins;edge_sum=d*w*b", WLM_F16, WLM_F16, WLM_I32, WLM_I64, 48, 2, 0, 1, 0, WLM_I64, ALL},
    {"prod=a*b", WLM_F32, WLM_F32, WLM_I64, WLM_I32, 4, 1, 1, 0, 0, WLM_I32, ALL},
    /* GATConv, a dot product, GENConv, SuperGATConv with AGNNConv's norms, and their gradients. */
    {"l:row:heads;r:column:heads;score=leaky_relu(l+r+a,0.25);softmax=b", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 8, 1,
     0, 0, WLM_I32, ALL},
    {"t:edge_sum=x*k;score=0.125*t;softmax=kept*b;max=b;sum=b*t", WLM_F16, WLM_F16, WLM_I64, WLM_I64, 64, 2, 0, 0, 1,
     WLM_I32, ALL},
    {"t:edge_sum=b;score=t;softmax=kept*b*e", WLM_BF16, WLM_F32, WLM_I32, WLM_I32, 12, 12, 0, 1, 0, WLM_I32, ALL},
    {"l:row:heads;r:column:1;t:edge_sum=x*k;u:edge_sum=t*x*0.03125;score=(l+r)*sigmoid(t)/(1+u*u);softmax=b+a;edge=b*u",
     WLM_F64, WLM_F64, WLM_I32, WLM_I64, 66, 3, 1, 0, 0, WLM_I32, ALL},
    {"d:row;c:row;l:row:base;s:row:scale;t:edge_sum=x*k;g:edge_sum=expscale(0.0625*t,l,s)*d*(b-c)*0.0625;sum=g*x;edge_"
     "sum=g",
     WLM_F16, WLM_F16, WLM_I32, WLM_I32, 24, 3, 0, 1, 0, WLM_I32, ALL},
    {"mean=relu(b+e);sum=x*b*a", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 1, 1, 0, 0, WLM_I32,
     SAMPLED(FASTRAND, NONE, 32)},
    {"mean=b;max=b;min=b", WLM_F16, WLM_F16, WLM_I64, WLM_I32, 300, 1, 0, 0, 1, WLM_I32, SAMPLED(BUCKET, NONE, 100)},
    {"sum=sigmoid(x+k)*b*a", WLM_BF16, WLM_F32, WLM_I32, WLM_I64, 128, 8, 1, 0, 0, WLM_I32,
     SAMPLED(FASTRAND_COPRIME, NONE, 9)},
    {"max=b;min=b*a", WLM_F64, WLM_F64, WLM_I32, WLM_I32, 33, 1, 1, 0, 1, WLM_I64, SAMPLED(FASTRAND, NONE, 577)},
    /* Sampled, walking all edges: with transpose, or with results of edges. */
    {"mean=b*e;max=b;min=b", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 1, 0, 1, 1, WLM_I32,
     SAMPLED(FASTRAND_COPRIME, NONE, 9)},
    {"sum=relu(b+e)*a;edge=x*b", WLM_F64, WLM_F64, WLM_I64, WLM_I64, 36, 2, 1, 1, 0, WLM_I32, SAMPLED(BUCKET, KEPT, 8)},
    {"sum=x*b*a;edge=x*b;edge_sum=x*b*a", WLM_F16, WLM_F32, WLM_I32, WLM_I32, 64, 4, 1, 0, 0, WLM_I32,
     SAMPLED(FASTRAND, UNBIASED, 16)},
    {"t:edge_sum=x*k;score=0.125*t;softmax=b;mean=b*t", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 64, 2, 0, 0, 0, WLM_I32,
     SAMPLED(FASTRAND, NONE, 16)},
    {"score=a;softmax=b", WLM_F16, WLM_F32, WLM_I32, WLM_I32, 64, 8, 1, 0, 0, WLM_I32,
     SAMPLED(FASTRAND_COPRIME, NONE, 9)},
    {"max=b;prod=b;edge=b*e", WLM_BF16, WLM_BF16, WLM_I64, WLM_I32, 40, 1, 0, 0, 1, WLM_I64,
     SAMPLED(FASTRAND, NONE, 12)},
    {"sum=sigmoid(x+k)*b", WLM_F32, WLM_F32, WLM_I32, WLM_I32, 128, 1, 0, 0, 0, WLM_I32,
     SAMPLED(FASTRAND, UNBIASED, 32)},
};
const int covering_message_count = (int)(sizeof covering_messages / sizeof *covering_messages);

wlm_problem covering_message_problem(const covering_message *message, wlm_csr *csr) {
  wlm_problem problem =
      PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = message->text, .n = message->n,
              .heads = message->heads, .dense_type = message->type, .transpose = message->transpose,
              .want_argmax = message->want_argmax, .argmax_type = message->argmax_type, .sampling = message->sampling);
  csr->rowptr_type = message->rowptr;
  csr->colind_type = message->colind;
  csr->value_type = message->values;
  csr->values = message->has_values ? csr : NULL;
  return problem;
}
