// Bindings of regressions outside simulations.
#include "../answers/regression.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arrays.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

using Terms = nb::ndarray<double, nb::numpy, nb::shape<3, -1>, nb::c_contig, nb::device::cpu>;
using Totals = nb::ndarray<double, nb::numpy, nb::shape<2>, nb::c_contig, nb::device::cpu>;

Estimator rules_of(In<double> x, In<i64> loss, const Terms& terms) {
  Estimator rules;
  rules.kind = Predicts::regression;
  if (loss.size() * sizeof(i64) != sizeof(Loss)) throw nb::value_error("loss: not a LOSS");
  std::memcpy(&rules.loss, loss.data(), sizeof(Loss));
  rules.features.resize(x.size());
  std::iota(rules.features.begin(), rules.features.end(), std::size_t{0});
  if (terms.shape(1) != Regression::n_terms(rules))
    throw nb::value_error("terms: of another number of features");
  return rules;
}
double predict(In<double> x, In<i64> loss, Terms terms) {
  const Estimator rules = rules_of(x, loss, terms);
  Regression one(rules);
  std::copy_n(terms.data(), terms.size(), one.terms.begin());
  return one.predict(x.data());
}
void learn(In<double> x, In<i64> loss, Terms terms, Totals totals, double run, double processors,
           double times) {
  const Estimator rules = rules_of(x, loss, terms);
  Regression one(rules);
  std::copy_n(terms.data(), terms.size(), one.terms.begin());
  one.norm = totals(0), one.steps = totals(1);
  one.learn(x.data(), run, processors, times);
  std::copy(one.terms.begin(), one.terms.end(), terms.data());
  totals(0) = one.norm, totals(1) = one.steps;
}

}  // namespace

void bind_regression(nb::module_& m) {
  m.def("predict_by", &predict, "x"_a, "loss"_a, "terms"_a,
        "Return the prediction of a regression for features. `loss`: LOSS of "
        "hpcgym.scheduler.estimates.learning as int64. `terms`: (3, n_terms) weights, scales and "
        "sums of squared gradients.");
  m.def("learn_by", &learn, "x"_a, "loss"_a, "terms"_a, "totals"_a, "run"_a, "processors"_a,
        "times"_a = 1.0,
        "Learn that a job with these features ran so long, in place. `totals`: (2,) the norm, 0 at "
        "first, and the number of this step, 1 at first. The loss counts `times` as much.");
}

}  // namespace hpc
