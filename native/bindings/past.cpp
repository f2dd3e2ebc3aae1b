// Bindings for usage by jobs that ended before a simulation begins.
#include <nanobind/stl/tuple.h>

#include <cstring>

#include "../answers/shares.hpp"
#include "arrays.hpp"
#include "parts.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

std::tuple<Out<double>, Out<double>, Out<i64>> charge_past(const ByName& accounts, In<i64> run, In<i64> end) {
  const Told told(accounts);
  Model model;
  model.n_jobs = static_cast<i64>(run.size());
  if (end.size() != run.size()) throw nb::value_error("end: one for each run");
  model.accounts = accounts_of(told, model.n_jobs);
  Shares shares(model);
  shares.charge_past(run.data(), end.data());
  const auto both = [](std::array<std::vector<double>, 2>& of) {
    of[0].insert(of[0].end(), of[1].begin(), of[1].end());
    return owned(std::move(of[0]));
  };
  std::vector<i64> book(sizeof(Book) / sizeof(i64));
  std::memcpy(book.data(), &shares.book, sizeof(Book));
  return {both(shares.used), both(shares.recent), owned(std::move(book))};
}

}  // namespace

void bind_past(nb::module_& m) {
  m.def("charge_past", &charge_past, "accounts"_a, "run"_a, "end"_a,
        "Charge jobs that ended before a simulation begins, by their ends, rising [s]; `accounts`: as "
        "a model of these jobs takes them. Return what has been used then and what is recent, both "
        "(2 * n,), and the book.");
}

}  // namespace hpc
