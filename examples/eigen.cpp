// C = A * B for an Eigen program: A is a SparseMatrix by rows, B and C are column-major matrices, used where they are.
//   c++ eigen.cpp -I /usr/include/eigen3 $(pkg-config --cflags --libs warploom) && ./a.out
#include <warploom/warploom.h>
#include <Eigen/Sparse>
#include <iostream>
#include <vector>

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  std::cerr << wlm_status_message(status) << ": " << wlm_error_detail() << '\n';
  std::exit(1);
}

int main() {
  const int rows = 300, cols = 200, n = 16;
  std::vector<Eigen::Triplet<float>> entries;
  for (int i = 0; i < rows; i++)
    for (int k = i % 7; k < cols; k += 13) entries.emplace_back(i, k, static_cast<float>(i % 5 - 2));
  Eigen::SparseMatrix<float, Eigen::RowMajor, int> a(rows, cols);
  a.setFromTriplets(entries.begin(), entries.end());
  Eigen::MatrixXf b = Eigen::MatrixXf::NullaryExpr(cols, n, [](int k, int j) { return float((k + j) % 9); }),
                  c(rows, n);

  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  options.device = "host"; // on a GPU the arrays must be in its memory
  wlm_context *context;
  check(wlm_context_create(&options, &context));

  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = a.rows(), csr.cols = a.cols(), csr.nnz = a.nonZeros();
  csr.rowptr = a.outerIndexPtr(), csr.colind = a.innerIndexPtr(), csr.values = a.valuePtr();
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = n;
  problem.b_order = problem.c_order = WLM_COLUMN_MAJOR;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b.data(), args.ldb = b.outerStride();
  args.c = c.data(), args.ldc = c.outerStride();
  check(wlm_spmm(context, &csr, &problem, &args));
  std::cout << "A * B   differs from Eigen by " << (c - a * b).cwiseAbs().maxCoeff() << '\n';

  // A SparseMatrix by columns, Eigen's default, is CSC: its arrays are those of A^T in CSR.
  Eigen::SparseMatrix<float> by_columns = a;
  csr.rows = by_columns.cols(), csr.cols = by_columns.rows();
  csr.rowptr = by_columns.outerIndexPtr(), csr.colind = by_columns.innerIndexPtr(), csr.values = by_columns.valuePtr();
  problem.transpose = 1;
  check(wlm_spmm(context, &csr, &problem, &args));
  std::cout << "by CSC  differs from Eigen by " << (c - a * b).cwiseAbs().maxCoeff() << '\n';
  wlm_context_destroy(context);
}
