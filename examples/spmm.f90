! C = A * B in Fortran 2008: A in CSR that counts from 1, B and C as Fortran holds them, by columns. The types repeat
! those of warploom.h; the wlm_*_init functions fill in sizes and defaults.
!   gfortran spmm.f90 $(pkg-config --libs warploom) && ./a.out
module warploom
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int), parameter :: wlm_ok = 0, wlm_column_major = 1

  type, bind(c) :: wlm_context_options ! the fields of the first release, which suffice
    integer(c_size_t) :: size
    type(c_ptr) :: device, database, system_database, kernel_cache, templates
    integer(c_int) :: record, compile_in_background
  end type

  type, bind(c) :: wlm_csr
    integer(c_size_t) :: size
    integer(c_int64_t) :: rows, cols, nnz
    type(c_ptr) :: rowptr, colind, values
    integer(c_int) :: rowptr_type, colind_type, value_type, has_values
    type(c_ptr) :: t_rowptr, t_colind, t_order
    integer(c_int64_t) :: base
  end type

  type, bind(c) :: wlm_problem
    integer(c_size_t) :: size
    integer(c_int64_t) :: n
    integer(c_int) :: operation, message, reduce, empty
    type(c_ptr) :: custom
    integer(c_int) :: dense_type, transpose
    integer(c_int64_t) :: heads
    integer(c_int) :: want_argmax, argmax_type
    integer(c_int) :: bias
    type(c_ptr) :: activation
    integer(c_int) :: sample, norm
    integer(c_int64_t) :: width
    integer(c_int) :: deterministic
    integer(c_int64_t) :: expected_calls
    integer(c_int) :: score, dropout, b_order, c_order
  end type

  type, bind(c) :: wlm_execute_args
    integer(c_size_t) :: size
    type(c_ptr) :: b, c, x, values, argmax, argmax_db, argmax_dvalues, dvalues, db
    real(c_double) :: alpha, beta
    type(c_ptr) :: bias
    integer(c_int64_t) :: seed, ldb, ldc
    type(c_ptr) :: workspace
    integer(c_size_t) :: workspace_size
    type(c_ptr) :: prepared, stream, operands, attention
  end type

  interface
    integer(c_int) function wlm_context_create(options, context) bind(c)
      import
      type(wlm_context_options), intent(in) :: options
      type(c_ptr), intent(out) :: context
    end function
    subroutine wlm_context_destroy(context) bind(c)
      import
      type(c_ptr), value :: context
    end subroutine
    integer(c_int) function wlm_context_options_init(options, size) bind(c)
      import
      type(wlm_context_options), intent(out) :: options
      integer(c_size_t), value :: size
    end function
    integer(c_int) function wlm_csr_init(csr, size) bind(c)
      import
      type(wlm_csr), intent(out) :: csr
      integer(c_size_t), value :: size
    end function
    integer(c_int) function wlm_problem_init(problem, size) bind(c)
      import
      type(wlm_problem), intent(out) :: problem
      integer(c_size_t), value :: size
    end function
    integer(c_int) function wlm_execute_args_init(args, size) bind(c)
      import
      type(wlm_execute_args), intent(out) :: args
      integer(c_size_t), value :: size
    end function
    integer(c_int) function wlm_spmm(context, csr, problem, args) bind(c)
      import
      type(c_ptr), value :: context
      type(wlm_csr), intent(in) :: csr
      type(wlm_problem), intent(in) :: problem
      type(wlm_execute_args), intent(in) :: args
    end function
    function wlm_error_detail() bind(c)
      import
      type(c_ptr) :: wlm_error_detail
    end function
    integer(c_size_t) function strlen(text) bind(c)
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  subroutine check(status)
    integer(c_int), intent(in) :: status
    character(kind=c_char), pointer :: text(:)
    if (status == wlm_ok) return
    call c_f_pointer(wlm_error_detail(), text, [strlen(wlm_error_detail())])
    print *, text
    error stop
  end subroutine

  ! C = A * B on the context's device, where all arrays must be.
  subroutine spmm(context, rows, cols, rowptr, colind, values, b, c)
    type(c_ptr), intent(in) :: context
    integer, intent(in) :: rows, cols
    integer(c_int), contiguous, target, intent(in) :: rowptr(:), colind(:)
    real(c_float), contiguous, target, intent(in) :: values(:), b(:, :)
    real(c_float), contiguous, target, intent(inout) :: c(:, :)
    type(wlm_csr) :: csr
    type(wlm_problem) :: problem
    type(wlm_execute_args) :: args
    call check(wlm_csr_init(csr, c_sizeof(csr)))
    csr%rows = rows
    csr%cols = cols
    csr%nnz = size(colind)
    csr%rowptr = c_loc(rowptr)
    csr%colind = c_loc(colind)
    csr%values = c_loc(values)
    csr%base = 1
    call check(wlm_problem_init(problem, c_sizeof(problem)))
    problem%n = size(b, 2)
    problem%b_order = wlm_column_major
    problem%c_order = wlm_column_major
    call check(wlm_execute_args_init(args, c_sizeof(args)))
    args%b = c_loc(b)
    args%c = c_loc(c)
    args%ldb = size(b, 1)
    args%ldc = size(c, 1)
    call check(wlm_spmm(context, csr, problem, args))
  end subroutine
end module

program example
  use warploom
  implicit none
  ! [ 1 0 2 ]
  ! [ 0 3 0 ]
  integer(c_int) :: rowptr(3) = [1, 3, 4], colind(3) = [1, 3, 2]
  real(c_float) :: values(3) = [1, 2, 3], b(3, 2), c(2, 2)
  character(kind=c_char), target :: device(5) = ['h', 'o', 's', 't', c_null_char]
  type(wlm_context_options) :: options
  type(c_ptr) :: context

  b = reshape([1., 2., 3., 10., 20., 30.], [3, 2])
  call check(wlm_context_options_init(options, c_sizeof(options)))
  options%device = c_loc(device)  ! without it the first GPU, in whose memory the arrays must then be
  call check(wlm_context_create(options, context))
  call spmm(context, 2, 3, rowptr, colind, values, b, c)
  print '(2f6.0)', c(1, :), c(2, :)
  call wlm_context_destroy(context)
end program
