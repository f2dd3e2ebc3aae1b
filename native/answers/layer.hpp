// The last step of a network: one layer of hidden units over inputs that a program works out.
//
// Each unit is a weighted sum of the inputs, from a bias on, and then its hyperbolic tangent. The
// score is a weighted sum of the units and one of the inputs, the skip. Sums of what depends on the
// job alone are kept by row, those of what is alike for all jobs for a pass. So the order of a sum
// is: the inputs of the job, and apart from them those of the pass; these two sums; then the other
// inputs, one by one.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include "job_rows.hpp"
#include "range.hpp"

namespace hpc {

class Layer {
 public:
  // An input that depends on the job, or the pass, alone: where its values are among all such parts.
  struct Part {
    std::size_t input, which;
  };
  static constexpr std::size_t most_inputs = 64, most_units = 256;

  // The numbers are the bias of each unit, its weights of the inputs, unit after unit, the outputs,
  // and the weights of the skip.
  Layer(const std::vector<double>& told, std::size_t n_inputs)
      : n_inputs_(n_inputs), n_units_(n_units(told, n_inputs)) {
    padded_ = (n_units_ + lanes - 1) / lanes * lanes;
    weights_.resize(n_inputs * width()), begin_.resize(width()), pass_.resize(width());
    outputs_.resize(padded_);
    const double *hidden = told.data() + n_units_, *output = hidden + n_units_ * n_inputs;
    for (std::size_t unit = 0; unit < n_units_; ++unit) {
      begin_[unit] = told[unit], outputs_[unit] = output[unit];
      for (std::size_t k = 0; k < n_inputs; ++k) weight(k)[unit] = hidden[unit * n_inputs + k];
    }
    for (std::size_t k = 0; k < n_inputs; ++k) weight(k)[padded_] = output[n_units_ + k];
  }
  // A copy begins without sums.
  Layer(const Layer& other)
      : of_job(other.of_job), of_pass(other.of_pass), of_pair(other.of_pair), n_inputs_(other.n_inputs_),
        n_units_(other.n_units_), padded_(other.padded_), weights_(other.weights_), begin_(other.begin_),
        outputs_(other.outputs_), pass_(other.pass_) {}
  Layer(Layer&&) = default;

  // Whether so many inputs have such numbers.
  static bool is_valid(const std::vector<double>& told, std::size_t n_inputs) {
    const std::size_t n = n_units(told, n_inputs);
    return is_between(static_cast<i64>(n_inputs), 1, most_inputs) && n <= most_units &&
           told.size() == n * (n_inputs + 2) + n_inputs;
  }

  std::vector<Part> of_job, of_pass;
  std::vector<std::size_t> of_pair;  // the inputs that are neither, in their order

  // Work out the sums of rows: `value(part, row)` is that of the job in it.
  template <class F>
  void follow(std::size_t n_rows, const std::vector<JobRows::Move>& moves, const std::vector<std::size_t>& rows, F value) {
    for (const auto& [from, to] : moves) {
      if (sums_.size() < (from + 1) * width()) sums_.resize((from + 1) * width());
      std::copy_n(&sums_[from * width()], width(), &sums_[to * width()]);
    }
    sums_.resize(n_rows * width());
    for (const std::size_t row : rows) {
      double* sum = &sums_[row * width()];
      std::copy(begin_.begin(), begin_.end(), sum);
      for (const Part& part : of_job) add(sum, part.input, value(part.which, row));
    }
  }
  // `shared`: the values of all parts of the pass.
  void begin_pass(const std::vector<double>& shared) {
    std::ranges::fill(pass_, 0.0);
    for (const Part& part : of_pass) add(pass_.data(), part.input, shared[part.which]);
  }
  // Write the scores of n jobs. `inputs`: those that are neither of the job nor of the pass, each of
  // all jobs. `rows`: of the jobs; nullptr: from 0 on. The scores may take the place of an input.
  void write(std::size_t n, const std::size_t* rows, const std::vector<const double*>& inputs, double* scores) const {
    Units unit;
    for (std::size_t i = 0; i < n; ++i) {
      const double *sum = &sums_[(rows ? rows[i] : i) * width()], *pass = pass_.data();
      double* value = unit.data();
#pragma omp simd
      for (std::size_t k = 0; k <= padded_; ++k) value[k] = sum[k] + pass[k];
      for (std::size_t k = 0; k < inputs.size(); ++k) add(value, of_pair[k], inputs[k][i]);
      put_through(value);
      scores[i] = value[padded_] + total(value);
    }
  }

  using Units = std::array<double, most_units + 1>;
  struct Bounds {  // of the units, and of the skip
    Units least, most;
  };
  // Where the sums of the pass stay if the values of all its parts stay there.
  Bounds bounds_of_pass(const std::vector<Range>& shared) const {
    Bounds bounds;
    std::fill_n(bounds.least.begin(), width(), 0.0), std::fill_n(bounds.most.begin(), width(), 0.0);
    for (const Part& part : of_pass) add(bounds, part.input, shared[part.which]);
    return bounds;
  }
  // Where the score in a row stays, from where its inputs do. The operations are those of the score
  // at the ends, which rounding keeps in order.
  Range range(std::size_t row, const std::vector<Range>& inputs, const Bounds& of_pass) const {
    Bounds bounds;
    double *least = bounds.least.data(), *most = bounds.most.data();
    for (std::size_t k = 0; k <= padded_; ++k) {
      least[k] = sums_[row * width() + k] + of_pass.least[k];
      most[k] = sums_[row * width() + k] + of_pass.most[k];
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) add(bounds, of_pair[k], inputs[k]);
    bool is_known = std::isfinite(least[padded_]) && std::isfinite(most[padded_]);
    for (std::size_t k = 0; k < n_units_; ++k) is_known = is_known && least[k] <= most[k];
    if (!is_known) return {};
    put_through(least), put_through(most);
    for (std::size_t k = 0; k < n_units_; ++k) {
      const double slack = Range::slack * std::abs(outputs_[k]);  // the tangent rises but for its last digits
      const double low = std::min(least[k], most[k]) - slack, high = std::max(least[k], most[k]) + slack;
      least[k] = low, most[k] = high;
    }
    return Range::of(least[padded_] + total(least), most[padded_] + total(most));
  }

 private:
  static constexpr std::size_t lanes = 4;
  std::size_t n_inputs_, n_units_, padded_;  // the last: units, up to a multiple of the lanes
  std::vector<double> weights_;  // by input, those of all units and then the skip's
  std::vector<double> begin_;    // of sums: biases, and 0
  std::vector<double> outputs_;
  std::vector<double> pass_;     // sums of the pass
  std::vector<double> sums_;     // by row, those of the job

  std::size_t width() const { return padded_ + 1; }
  double* weight(std::size_t input) { return &weights_[input * width()]; }
  const double* weight(std::size_t input) const { return &weights_[input * width()]; }
  static std::size_t n_units(const std::vector<double>& told, std::size_t n_inputs) {
    return told.size() < n_inputs ? 0 : (told.size() - n_inputs) / (n_inputs + 2);
  }
  void add(double* sums, std::size_t input, double value) const {
    const double* each = weight(input);
#pragma omp simd
    for (std::size_t k = 0; k <= padded_; ++k) sums[k] += each[k] * value;
  }
  void add(Bounds& sums, std::size_t input, const Range& value) const {
    const double *each = weight(input), low = value.least, high = value.most;
    double *least = sums.least.data(), *most = sums.most.data();
#pragma omp simd
    for (std::size_t k = 0; k <= padded_; ++k) {
      const double a = each[k] * low, b = each[k] * high;
      least[k] += a < b ? a : b, most[k] += a < b ? b : a;
    }
  }
  // Make of the sum of each unit what it adds to the score.
  void put_through(double* unit) const {
    elementary::tanh(unit, padded_);
    for (std::size_t k = 0; k < padded_; ++k) unit[k] *= outputs_[k];
  }
  // The sum over units, of which every fourth is added up, and then these.
  double total(const double* unit) const {
    std::array<double, lanes> fourths{};
    std::size_t k = 0;
    for (; k + lanes <= n_units_; k += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) fourths[lane] += unit[k + lane];
    for (; k < n_units_; ++k) fourths[k % lanes] += unit[k];
    return (fourths[0] + fourths[1]) + (fourths[2] + fourths[3]);
  }
};

}  // namespace hpc
