// Linear regression learned one observation at a time, by the normalised adaptive gradient (NAG):
// algorithm 2 of S. Ross, P. Mineiro and J. Langford, "Normalized Online Learning", UAI 2013, which
// needs no scaling of features. The losses are those of Glesser 2016, section 7.3.2.
//
// The terms of a prediction are the products of up to `degree` features. Sums have a fixed order,
// so that the same inputs give the same weights to the last bit.
#pragma once
#include <array>
#include <vector>

#include "../base/archive.hpp"
#include "../base/elementary.hpp"
#include "../core/told.hpp"

namespace hpc {

class Regression {
 public:
  std::vector<double> terms;  // of each term: weights, then scales, then sums of squared gradients
  double norm = 0, steps = 1;

  Regression(const Estimator& rules) : rules_(&rules), phi_(n_terms(rules)) {
    terms.resize(3 * phi_.size());
  }
  static std::size_t n_terms(const Estimator& rules) {
    if (rules.kind != Predicts::regression) return 0;
    const std::size_t n = rules.features.size();
    return 1 + n + (rules.loss.degree == 2 ? n * (n + 1) / 2 : 0);
  }

  void keep(Archive& a) { a(terms, norm, steps); }
  double predict(const double* x) {
    expand(x);
    return sum();
  }
  // Learn from a job with these processors and run time [s]: one step of NAG. `times` multiplies
  // the weight of its loss.
  void learn(const double* x, double run, double processors, double times = 1) {
    const Loss& loss = rules_->loss;
    const double counts = times * weight_of(loss.weighting, run, processors);
    expand(x);
    rescale();
    const std::size_t n = phi_.size();
    const double gradient = counts * slope(sum(), run);
    const double rate = loss.eta * std::sqrt(steps / norm), l2 = loss.l2;
    double *w = terms.data(), *scales = w + n, *squares = scales + n;
    const double* phi = phi_.data();
    for (std::size_t i = 0; i < n; ++i) {
      const double g = gradient * phi[i] + l2 * w[i];
      squares[i] += g * g;
      const double step = rate * g / (scales[i] * std::sqrt(squares[i]));
      w[i] -= squares[i] > 0 ? step : 0.0;
    }
    steps += 1;
  }

 private:
  const Estimator* rules_;
  std::vector<double> phi_;  // the terms of the present job

  void expand(const double* x) {
    phi_[0] = 1;
    double* const own = phi_.data() + 1;
    const std::size_t n = rules_->features.size();
    for (std::size_t i = 0; i < n; ++i) own[i] = x[rules_->features[i]];
    if (rules_->loss.degree != 2) return;
    double* product = own + n;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = i; k < n; ++k) *product++ = own[i] * own[k];
  }
  double sum() const {
    // four parallel sums: within each, an addition waits for the one before
    double a = 0, b = 0, c = 0, d = 0;
    const std::size_t fours = phi_.size() / 4 * 4;
    for (std::size_t i = 0; i < fours; i += 4) {
      a += terms[i] * phi_[i];
      b += terms[i + 1] * phi_[i + 1];
      c += terms[i + 2] * phi_[i + 2];
      d += terms[i + 3] * phi_[i + 3];
    }
    for (std::size_t i = fours; i < phi_.size(); ++i) a += terms[i] * phi_[i];
    return (a + b) + (c + d);
  }
  // Rescale the weights for terms larger than any before, and add to the norm.
  void rescale() {
    const std::size_t n = phi_.size();
    double *w = terms.data(), *scales = w + n, total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::abs(phi_[i]);
      if (size > scales[i]) {
        w[i] *= scales[i] / size;
        scales[i] = size;
      }
      if (scales[i] > 0) {
        const double part = phi_[i] / scales[i];
        total += part * part;
      }
    }
    norm += total;
  }
  // The derivative of the unweighted loss by the prediction.
  double slope(double prediction, double run) const {
    const Loss& loss = rules_->loss;
    const double error = prediction - run - loss.threshold;
    if (error > 0) return branch_slope(loss.over, loss.over_scale, error);
    if (error < 0) return -branch_slope(loss.under, loss.under_scale, -error);
    return 0;
  }
  static double branch_slope(Branch branch, double scale, double error) {
    if (branch == Branch::absolute) return scale;
    if (branch == Branch::squared) return 2.0 * scale * error;
    // limited, so that squared slopes times features stay finite
    return scale * elementary::exp(std::min(scale * error, 300.0));
  }
  // The weight of a job's loss; both numbers count as at least 1.
  static double weight_of(Weighting weighting, double run, double processors) {
    if (weighting == Weighting::constant) return 1;
    const double p = elementary::log(std::max(run, 1.0)), q = elementary::log(std::max(processors, 1.0));
    if (weighting == Weighting::long_ones) return 5.0 + (p - q);
    if (weighting == Weighting::wide_ones) return 5.0 + (q - p);
    if (weighting == Weighting::small_ones) return 11.0 - (q + p);
    return 1.0 + (q + p);
  }
};

}  // namespace hpc
