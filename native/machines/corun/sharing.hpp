// The description of a machine whose nodes jobs share.
//
// All nodes are alike and have the same number of parts. A job has one part of each of its nodes,
// or whole nodes; units are parts. Times are in ticks, much shorter than a second, as jobs that
// change each other's speed do not end at whole seconds. The code of a job gives its speed beside
// others.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "../../base/archive.hpp"
#include "../../base/numbers.hpp"

namespace hpc {

// Of a job: whole nodes, as few as it needs or spread over more; or one part of each node.
enum class Placement : i64 { compact, spread, part };
// The order in which nodes are taken: best partners first; nodes in use first, with the best
// partners first or by number; or all by number.
enum class Partners : i64 { best, fill, first, used };

// The scheduler's belief about the speedups of C codes, and what follows from it.
struct Belief {
  std::vector<double> pairs;  // (C, C) of a code beside another
  std::vector<double> alone;  // (C,) of a code on parts of its nodes, without neighbours
  std::vector<i64> rank;      // (C, C + 1) rank of neighbours for each code, C: an idle node
  std::vector<i64> good;      // (C, C) 1 if two codes gain together, which counts for popularity
  std::vector<i64> partner;   // (C, C) 1 if a job may start beside another
  double greatest = 1;        // highest rate that a job is predicted to keep

  void keep(Archive& a) { a(pairs, alone, rank, good, partner, greatest); }
};

// A file system that all jobs share, and that slows them down under load.
struct FileSystem {
  double bandwidth;           // [bytes/s]
  std::vector<double> share;  // (C,) share of the time of a code alone in which it waits for files
  const i64* demand;          // of each job in that time [bytes/s]
};

// Power of jobs beyond an idle machine, if energy is counted.
struct Draws {
  double processor_w;           // of each busy processor; or, if not empty, by node:
  std::vector<double> node_w;   // (N, 2) of a busy core; of a node in use if the second is not 0
  std::array<i64, 3> cores;     // of a node, at most, for a job of each placement
  const i64* processors;        // requested by each job
};

struct Sharing {
  i64 n_nodes, parts, n_codes;
  Partners partners = Partners::best;
  bool fills = false;        // all that fits behind the head starts, without a reservation
  // how many jobs behind the one that came first may start before it, if they are over by its start
  // as requested, whatever the speeds; 0: the rule is another
  i64 first_come = 0;
  bool selective = false;    // jobs start beside good partners only
  bool logs_spells = false;  // it is recorded which job ran how fast beside which
  // weights of orders by the state of the machine: fit, popularity, shortness; all 0: unused
  std::array<double, 3> weights{};
  const i64 *nodes, *placement, *code;  // by job
  std::vector<double> speedup, alone;   // true values, as in `Belief`
  Belief belief;                        // at the beginning
  std::optional<FileSystem> files;
  std::optional<Draws> draws;

  bool weighs() const { return weights[0] != 0 || weights[1] != 0 || weights[2] != 0; }
  bool is_part(i64 j) const { return placement[j] == static_cast<i64>(Placement::part); }
  // Parts of each of its nodes that are closed to other jobs.
  i64 parts_of(i64 j) const { return is_part(j) ? 1 : parts; }
  bool is_compact(i64 j) const { return placement[j] == static_cast<i64>(Placement::compact); }
  // The same for the jobs from row `first` on.
  Sharing part(i64 first) const {
    Sharing some = *this;
    some.nodes += first, some.placement += first, some.code += first;
    if (files) some.files->demand += first;
    if (draws) some.draws->processors += first;
    return some;
  }
};

}  // namespace hpc
