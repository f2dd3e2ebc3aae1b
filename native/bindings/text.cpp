// Bindings for reading texts.
#include "parts.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "../text/swf.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

template <class T, nb::ssize_t... shape>
using Filled = nb::ndarray<T, nb::numpy, nb::shape<shape...>, nb::c_contig, nb::device::cpu>;

std::tuple<std::size_t, i64, i64, i64, i64> parse_lines(
    const nb::bytes& text, std::size_t position, i64 line, const std::array<i64, 18>& kinds,
    Filled<i64, 18, -1> whole, Filled<double, -1> decimal, Filled<i64, -1, 4> special,
    Filled<i64, 18> rounded) {
  const std::size_t size = text.size();
  if (size == 0 || text.c_str()[size - 1] != '\n')
    throw nb::value_error("text: must end with a line end");
  if (whole.shape(1) != decimal.shape(0)) throw nb::value_error("decimal: as many rows as whole");
  swf::Kinds how;
  for (std::size_t k = 0; k < how.size(); ++k) {
    if (kinds[k] < 0 || kinds[k] > 3) throw nb::value_error("kinds: from 0 to 3");
    how[k] = static_cast<swf::Kind>(kinds[k]);
  }
  const swf::Block block(how, static_cast<i64>(decimal.shape(0)), static_cast<i64>(special.shape(0)),
                         whole.data(), decimal.data(), special.data(), rounded.data());
  const swf::Place p = block.read(text.c_str(), size, {position, line});
  return {p.position, p.line, p.row, p.n_special, p.n_extra};
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def("parse_lines", &parse_lines, "text"_a, "position"_a, "line"_a, "kinds"_a, "whole"_a,
        "decimal"_a, "special"_a, "rounded"_a,
        "Read lines of SWF from `position` on, behind so many lines, until the text, the rows or "
        "the special lines are full. `kinds`: of hpcgym.workload.io.swf.KINDS. Filled are "
        "`whole`: (18, n_rows) the fields of each job, undefined in the rows of odd lines; "
        "`decimal`: (n_rows,) the field average_cpu_time; `special`: (n, 4) of each comment and odd "
        "line its first byte, the byte after its last one, its number, and its row, or for a "
        "comment -1 - rows before it. `rounded`: (18,) in how many jobs the field was rounded, "
        "added to what it holds. Returns position, line, rows, special lines, and how many jobs "
        "had more than 18 fields.");
}

}  // namespace hpc
