// Lines of the Standard Workload Format into columns.
#pragma once
#include <array>
#include <cstring>

#include "../base/numbers.hpp"

namespace hpc::swf {

inline constexpr i64 n_fields = 18, odd = -1;
inline constexpr i64 most = i64{1} << 53;  // integers up to this are exact as doubles

// How a field is read: as an integer, rounded, rounded and limited, or with decimals.
enum class Kind : std::uint8_t { whole, rounded, time, decimal };
using Kinds = std::array<Kind, n_fields>;

// Where to continue: byte of the text; lines, rows and special lines done; jobs with more than 18
// fields.
struct Place {
  std::size_t position;
  i64 line, row = 0, n_special = 0, n_extra = 0;
};

// Columns that lines are read into, with a fast parser for usual lines. A line that it does not
// understand (text, an exponent, a missing field, a number of over 18 digits) is odd, and left to
// the full parser. A text ends with a line end, so that no read goes beyond it.
class Block {
  Kinds kinds_;
  i64 n_rows_, most_special_;
  i64* whole_;  // (18, n_rows) fields of each job; undefined in the rows of odd lines
  double* decimal_;  // (n_rows,) the field with decimals
  // (most_special, 4) of comments and odd lines: first byte, byte after the last, number, and row,
  // or for a comment -1 - rows before it
  i64* special_;
  i64* rounded_;  // (18,) number of jobs whose field was rounded, added to

  static bool is_blank(char c) { return c == ' ' || c == '\t'; }

  // Read the fields of a line; return their number, 19 if there are more. `changed`: rounded ones.
  i64 read(const char* at, i64 row, unsigned& changed) const {
    for (i64 field = 0;; ++field) {
      while (is_blank(*at)) ++at;
      if (*at == '\n' || *at == '\r') return field;
      if (field == n_fields) return n_fields + 1;
      const i64 sign = *at == '-' ? -1 : 1;
      if (*at == '-' || *at == '+') ++at;
      i64 value = 0, fraction = 0, scale = 1;
      int digits = 0;
      for (; *at >= '0' && *at <= '9' && digits < 18; ++at, ++digits) value = value * 10 + (*at - '0');
      if (*at == '.')
        for (++at; *at >= '0' && *at <= '9' && digits < 18; ++at, ++digits, scale *= 10)
          fraction = fraction * 10 + (*at - '0');
      if (digits == 0 || !(is_blank(*at) || *at == '\n' || *at == '\r')) return odd;
      const Kind kind = kinds_[index(field)];
      if (kind == Kind::decimal) {
        // Exact: integers up to 2^53 and powers of ten up to 10^22 are, so one rounding is left.
        const i64 mantissa = value * scale + fraction;
        if (mantissa > most) return odd;
        const double size = static_cast<double>(mantissa) / static_cast<double>(scale);
        decimal_[row] = sign < 0 ? -size : size;
        continue;
      }
      if (fraction > 0) {
        if (kind == Kind::whole) return odd;
        changed |= 1u << field;
        if (2 * fraction >= scale) ++value;
      }
      if (kind == Kind::time && value > most) return odd;
      whole_[field * n_rows_ + row] = sign * value;
    }
  }

 public:
  Block(const Kinds& kinds, i64 n_rows, i64 most_special, i64* whole, double* decimal,
        i64* special, i64* rounded)
      : kinds_(kinds), n_rows_(n_rows), most_special_(most_special), whole_(whole),
        decimal_(decimal), special_(special), rounded_(rounded) {}

  // Read lines until the text, the rows or the special lines are full.
  Place read(const char* text, std::size_t size, Place p) const {
    while (p.position < size && p.row < n_rows_ && p.n_special < most_special_) {
      const char* const begin = text + p.position;
      const char* const end = static_cast<const char*>(std::memchr(begin, '\n', size - p.position));
      const char *at = begin, *last = end;
      ++p.line;
      while (is_blank(*at)) ++at;
      while (last > at && last[-1] == '\r') --last;
      const bool comment = *at == ';';
      unsigned changed = 0;
      i64 fields = comment ? 0 : read(at, p.row, changed);
      if (std::memchr(at, '\r', static_cast<std::size_t>(last - at))) fields = odd;
      if (comment || fields == odd || (fields > 0 && fields < n_fields)) {
        i64* one = special_ + 4 * p.n_special++;
        one[0] = begin - text, one[1] = end - text, one[2] = p.line;
        one[3] = comment ? -1 - p.row : p.row;
      } else if (fields >= n_fields) {
        p.n_extra += fields > n_fields;
        for (i64 field = 0; changed >> field; ++field) rounded_[field] += changed >> field & 1;
      }
      p.row += !comment && fields != 0;
      p.position = static_cast<std::size_t>(end - text) + 1;
    }
    return p;
  }
};

}  // namespace hpc::swf
