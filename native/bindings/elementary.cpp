// Bindings of elementary functions, of a number and of arrays.
#include "../base/elementary.hpp"

#include "arrays.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

template <class F>
void bind(nb::module_& m, const char* name, F f, const char* doc) {
  m.def(name, [f](In<double> x) {
    std::vector<double> values(x.data(), x.data() + x.size());
    for (double& value : values) value = f(value);
    return owned(std::move(values));
  }, "x"_a, doc);
  m.def(name, [f](double x) { return f(x); }, "x"_a);
}

}  // namespace

void bind_elementary(nb::module_& m) {
  bind(m, "log", [](double x) { return elementary::log(x); }, "Return the natural logarithm.");
  bind(m, "log2", [](double x) { return elementary::log2(x); }, "Return the logarithm to base 2.");
  bind(m, "log10", [](double x) { return elementary::log10(x); }, "Return the logarithm to base 10.");
  bind(m, "log1p", [](double x) { return elementary::log1p(x); }, "Return log(1 + x).");
  bind(m, "exp", [](double x) { return elementary::exp(x); }, "Return e to the power of x.");
  bind(m, "exp2", [](double x) { return elementary::exp2(x); }, "Return 2 to the power of x.");
  bind(m, "expm1", [](double x) { return elementary::expm1(x); }, "Return exp(x) - 1.");
  bind(m, "tanh", [](double x) { return elementary::tanh(x); }, "Return the hyperbolic tangent.");
  bind(m, "cos", [](double x) { return elementary::cos(x); }, "Return the cosine, 0 <= x <= 2 pi.");
  bind(m, "sin", [](double x) { return elementary::sin(x); }, "Return the sine, 0 <= x <= 2 pi.");
  m.def("power", [](In<double> x, In<double> y) {
    std::vector<double> values(as_many(x, y));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = elementary::pow(x(i), y(i));
    return owned(std::move(values));
  }, "x"_a, "y"_a, "Return x to the power of y.");
  m.def("power", [](double x, double y) { return elementary::pow(x, y); }, "x"_a, "y"_a);
}

}  // namespace hpc
