// What a machine on which jobs share nodes is told.
//
// All nodes are alike and have so many parts. A job has one part of each of its nodes, or is alone
// on them; units are parts. Times are in ticks, much shorter than a second, for jobs that speed each
// other up end at no whole second. How fast a job runs beside others its code says.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "../../base/archive.hpp"
#include "../../base/numbers.hpp"

namespace hpc {

// Of a job: alone on its nodes, with as few as it needs or spread over more; or with one part each.
enum class Placement : i64 { compact, spread, part };
// In which order nodes are taken: the best partners first, nodes in use first, or by number.
enum class Partners : i64 { best, fill, first };

// What the scheduler takes for the speedups of C codes, and what follows for its choices.
struct Belief {
  std::vector<double> pairs;  // (C, C) of a code beside another
  std::vector<double> alone;  // (C,) of a code on parts of its nodes, with nobody beside
  std::vector<i64> rank;      // (C, C + 1) place of each code beside a code, C: of an idle node
  std::vector<i64> good;      // (C, C) 1 if two codes gain together: what makes a job popular
  std::vector<i64> partner;   // (C, C) 1 if a job may start beside another
  double greatest = 1;        // the highest rate that a job is predicted to keep

  void keep(Archive& a) { a(pairs, alone, rank, good, partner, greatest); }
};

// A file system that all jobs share, where they slow each other down.
struct FileSystem {
  double bandwidth;           // [bytes/s]
  std::vector<double> share;  // (C,) of its time that a code alone waits for files
  const i64* demand;          // of each job meanwhile [bytes/s]
};

// What jobs draw beyond what an idle machine does, where energy is counted.
struct Draws {
  double processor_w;           // of each busy processor; else what each node has says it:
  std::vector<double> node_w;   // (N, 2) of a busy core, or if the second is not 0 of a node in use
  std::array<i64, 3> cores;     // of a node that a job of each placement has at most
  const i64* processors;        // that each job wants
};

struct Sharing {
  i64 n_nodes, parts, n_codes;
  Partners partners = Partners::best;
  bool fills = false;        // whatever fits behind the head starts, without a reservation
  bool selective = false;    // a job starts beside good partners only
  bool logs_spells = false;  // it is noted who ran how fast beside whom
  // of orders by what the machine is like at a pass: fit, popularity, shortness; all 0: another
  std::array<double, 3> weights{};
  const i64 *nodes, *placement, *code;  // by job
  std::vector<double> speedup, alone;   // in truth, as in `Belief`
  Belief belief;                        // at the beginning
  std::optional<FileSystem> files;
  std::optional<Draws> draws;

  bool weighs() const { return weights[0] != 0 || weights[1] != 0 || weights[2] != 0; }
  bool is_part(i64 j) const { return placement[j] == static_cast<i64>(Placement::part); }
  // Parts of each of its nodes that nobody else may have.
  i64 parts_of(i64 j) const { return is_part(j) ? 1 : parts; }
  bool is_compact(i64 j) const { return placement[j] == static_cast<i64>(Placement::compact); }
  // The same for the jobs from some row on alone.
  Sharing part(i64 first) const {
    Sharing some = *this;
    some.nodes += first, some.placement += first, some.code += first;
    if (files) some.files->demand += first;
    if (draws) some.draws->processors += first;
    return some;
  }
};

}  // namespace hpc
