// Fair Tree: a ranking of users by usage relative to shares, of theirs and of the accounts above.
//
// Slurm's default fair share (https://slurm.schedmd.com/fair_tree.html). Among accounts with the
// same parent, the first is the one with the greatest share relative to its part of their usage.
// All users below an account rank before all users below the next one. Ties share a rank.
#pragma once
#include <algorithm>
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

// A number rounded to 40 bits, about 12 digits: sums that differ only by rounding tie.
inline double rounded(double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  return std::ldexp(std::nearbyint(fraction * 1099511627776.0), exponent - 40);
}

class FairTree {
 public:
  // Write the rank of each user: 1 for the first, down to 1 / number of users for the last.
  // Accounts that tie count as one: the users below any of them are compared. A user that ties with
  // an account has the rank of the first user below that. The users are the first accounts;
  // `parent`: the account above, -1: the machine; `part`: the share relative to it.
  void rank(const std::vector<i64>& parent, const std::vector<double>& part,
            const std::vector<double>& usage, std::vector<double>& places) {
    link(parent, part, usage);
    waiting_.clear();
    const auto users = static_cast<i64>(places.size());
    add_below(parent.size());
    put_in_order(0, false);
    for (i64 place = users, untied = users; !waiting_.empty();) {
      const Served next = waiting_.back();
      waiting_.pop_back();
      if (next.account < users) {
        if (!next.ties) place = untied;
        places[index(next.account)] = static_cast<double>(place) / static_cast<double>(users);
        --untied;
        continue;
      }
      // all that tie with it are accounts, too: users come before them
      tied_.assign(1, next.account);
      for (; !waiting_.empty() && waiting_.back().ties; waiting_.pop_back())
        tied_.push_back(waiting_.back().account);
      const std::size_t begin = waiting_.size();
      for (const i64 account : tied_) add_below(index(account));
      put_in_order(begin, next.ties);
    }
  }

 private:
  struct Served {  // an account still to be ranked
    i64 account;
    double share;  // relative to its part of the usage of its siblings
    bool ties;     // with the account before it
  };
  std::vector<std::vector<i64>> below_;  // by account, and the machine last
  std::vector<double> served_;           // by account
  std::vector<Served> waiting_;          // the next one is last
  std::vector<i64> tied_;

  void link(const std::vector<i64>& parent, const std::vector<double>& part,
            const std::vector<double>& usage) {
    const std::size_t machine = parent.size();
    below_.resize(machine + 1);
    served_.assign(machine, inf);
    for (auto& below : below_) below.clear();
    double all = 0;
    for (std::size_t a = 0; a < machine; ++a)
      if (parent[a] < 0) all += usage[a];
    for (std::size_t a = 0; a < machine; ++a) {
      below_[parent[a] < 0 ? machine : index(parent[a])].push_back(static_cast<i64>(a));
      if (!(usage[a] > 0)) continue;
      const double used = usage[a] / (parent[a] < 0 ? all : usage[index(parent[a])]);
      served_[a] = rounded(part[a] / used);
    }
  }
  void add_below(std::size_t account) {
    for (const i64 a : below_[account]) waiting_.push_back({a, served_[index(a)], false});
  }
  // Sort by share, the greatest last; `ties`: whether that one ties with the account before these.
  void put_in_order(std::size_t begin, bool ties) {
    const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(first, waiting_.end(), [](const Served& a, const Served& b) {
      return a.share != b.share ? a.share < b.share : a.account > b.account;
    });
    for (auto s = first; s != waiting_.end(); ++s)
      s->ties = s + 1 == waiting_.end() ? ties : s->share == s[1].share;
  }
};

}  // namespace hpc
