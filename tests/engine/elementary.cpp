// Elementary functions for a test that compiles them in several ways.
#include "base/elementary.hpp"

using namespace hpc;

template <class F>
static void fill(F f, const double* x, double* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = f(x[i]);
}

// `which`: of the names in the order of letters.
extern "C" void values_of(std::int64_t which, const double* x, const double* y, double* values, std::int64_t n) {
  switch (which) {
    case 0: return fill([](double a) { return elementary::cos(a); }, x, values, n);
    case 1: return fill([](double a) { return elementary::exp(a); }, x, values, n);
    case 2: return fill([](double a) { return elementary::exp2(a); }, x, values, n);
    case 3: return fill([](double a) { return elementary::expm1(a); }, x, values, n);
    case 4: return fill([](double a) { return elementary::log(a); }, x, values, n);
    case 5: return fill([](double a) { return elementary::log10(a); }, x, values, n);
    case 6: return fill([](double a) { return elementary::log1p(a); }, x, values, n);
    case 7: return fill([](double a) { return elementary::log2(a); }, x, values, n);
    case 9: return fill([](double a) { return elementary::sin(a); }, x, values, n);
    case 10: return fill([](double a) { return elementary::tanh(a); }, x, values, n);
    default: for (std::int64_t i = 0; i < n; ++i) values[i] = elementary::pow(x[i], y[i]);
  }
}
