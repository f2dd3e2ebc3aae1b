// The Python module of the engine: hpcgym._engine.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../base/interrupts.hpp"
#include "../places/foresight.hpp"
#include "../places/simulation.hpp"
#include "alone.hpp"
#include "arrays.hpp"
#include "beginning.hpp"
#include "corun.hpp"
#include "parts.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hpc;

namespace {

const char* name_of(Asked asked) {
  constexpr std::array<const char*, 7> names{
      "", "order", "job", "prediction", "correction", "renewal", "starts"};
  return names[static_cast<std::size_t>(asked)];
}

i64 begin(AnySimulation& s, i64 time, bool due, In<i64> running, In<i64> start, In<i64> predicted,
          In<i64> promised, const Maybe& history, const Maybe& reserved, const Maybe& looks,
          const Maybe& first, const Maybe& node, const Maybe& units, const Maybe& ordered_by,
          const Maybe& expected, const Maybe& corrections, const std::optional<In<double>>& seen) {
  return s.begin(beginning_of(time, due, running, start, predicted, promised, history, reserved, looks,
                              first, node, units, ordered_by, expected, corrections, seen));
}
Out<i64> learn_from(AnySimulation& s, In<i64> past, In<i64> by_start, In<i64> start, i64 time) {
  const auto check = [&](const In<i64>& rows) {
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (rows(k) < 0 || rows(k) >= static_cast<i64>(start.size()))
        throw nb::index_error("learn_from: no such job");
  };
  check(past), check(by_start);
  std::vector<i64> said;
  {
    const nb::gil_scoped_release others;
    said = s.learn_from({past.data(), past.size()}, {by_start.data(), by_start.size()},
                        {start.data(), start.size()}, time);
  }
  return owned(std::move(said));
}

// Work that Python threads share.
struct Work {
  std::atomic<bool> is_over = false;
};
// Python's main thread, the only one that runs handlers of signals. In a process that was forked it is
// the one that forked.
unsigned long main_thread;
// Run those that are due: that of Ctrl-C throws KeyboardInterrupt, and users' own what they like.
void run_handlers() {
  if (PyThread_get_thread_ident() != main_thread) return;
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

NB_MODULE(_engine, m) {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  const nb::object os = nb::module_::import_("os");
  if (nb::hasattr(os, "register_at_fork"))
    os.attr("register_at_fork")("after_in_child"_a = nb::cpp_function([] {
      main_thread = PyThread_get_thread_ident();
    }));
  ask_caller = run_handlers;
  nb::class_<Work>(m, "Work", "Calls from several threads that end together; a thread enters it.")
      .def(nb::init<>())
      .def("__enter__", [](const Work& work) { this_thread.is_over = &work.is_over; })
      .def("__exit__",
           [](const Work&, nb::object, nb::object, nb::object) { this_thread.is_over = nullptr; },
           "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("end", [](Work& work) { work.is_over = true; },
           "Let calls within it end, with a RuntimeError.");
#ifdef NDEBUG
  nb::set_leak_warnings(false);
#endif
  m.doc() = "The native engine: simulations that run to a time, and go on.";
  m.attr("FOREVER") = forever;
  m.attr("SOURCES") = HPCGYM_SOURCES;  // a hash
  bind_elementary(m);
  bind_model(m);

  nb::class_<AnySimulation>(m, "Simulation", "A machine and a queue, from empty to empty.")
      .def(nb::new_(&make_simulation), "model"_a)
      .def("begin", alone(&begin), nb::kw_only(), "time"_a, "due"_a, "running"_a, "start"_a, "predicted"_a,
           "promised"_a, "history"_a = nb::none(), "reserved"_a = nb::none(),
           "looks"_a = nb::none(), "first"_a = nb::none(), "node"_a = nb::none(),
           "units"_a = nb::none(), "ordered_by"_a = nb::none(), "expected"_a = nb::none(),
           "corrections"_a = nb::none(), "seen"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
           "Begin with jobs that run and jobs that wait, just before `time` [s]: the first ones, as "
           "many as `predicted` [s] and `promised` [s], -1, tell of. `running`: in the order of "
           "their starts, `start` [s]. `due`: a pass is then. `history`: (n_users * n,) run "
           "times of users' last jobs [s], -1. `reserved`: [s] of jobs that wait, where each has a "
           "reservation. `looks`: where passes come by the clock, as it keeps them. `first`, "
           "`node`, `units`: on nodes the cells of each that runs, then of each that waits if that "
           "has a reservation; the allocation places those that run where none are known. Where run times "
           "are learned and nothing is to be asked for: `ordered_by`, by job [s], and `seen`, (n * 20,), the "
           "features of each at its submission; `expected` [s] and `corrections` of those that run. Return "
           "the first of those that cannot run, as it has ended by then or finds no room, -1 if all "
           "can. Where something is asked for, answer, and call it again.")
      .def("learn_from", alone(&learn_from), "past"_a, "by_start"_a, "start"_a, "time"_a,
           "Learn from jobs of the past, which have ended by `time` [s], each as it was seen at its "
           "submission. `by_start`: all jobs, others run on. `start`: (n_jobs,) [s]. Return what the "
           "first estimate said of each of the past then [s]; nothing if it does not learn here.")
      .def("run", alone(&AnySimulation::run), "until"_a = forever, "passes"_a = forever,
           nb::call_guard<nb::gil_scoped_release>(),
           "Simulate up to `until` [s], inclusive, or so many passes, or to what is asked for; return "
           "the passes done.")
      .def_prop_ro("asked", alone(+[](const AnySimulation& s) { return name_of(s.asked()); }),
           "What it waits for: order, job, prediction, correction, renewal or starts; an empty text: "
           "nothing.")
      .def_prop_ro("job", alone(+[](const AnySimulation& s) { return s.now().about; }),
                   "The job that a prediction or correction is for.")
      .def("predict", alone(&AnySimulation::predict), "backfilling"_a, "ordering"_a = nb::none(),
           "Say how long the job in question runs [s], by the two estimates.")
      .def("renew", alone(+[](AnySimulation& s, In<i64> rows, In<double> seconds) {
             s.renew(rows.data(), seconds.data(), as_many(rows, seconds));
           }), "rows"_a, "seconds"_a, "Say how long jobs that wait run [s], for the ordering.")
      .def("order", alone(+[](AnySimulation& s, In<i64> rows, In<double> scores) {
             s.order(rows.data(), scores.data(), as_many(rows, scores));
           }), "rows"_a, "scores"_a, "Give jobs that wait the scores of this pass.")
      .def("select", alone(&AnySimulation::select), "job"_a, "beside"_a = -1,
           "Say which of the jobs that wait is served next, or -1, none now, where jobs share nodes or "
           "an order is a rule. Where jobs share nodes, `beside`: a job that runs, whose nodes it "
           "takes first, -1.")
      .def("launch", alone(+[](AnySimulation& s, In<i64> rows, In<i64> first, In<i64> node,
                               In<i64> units) {
             if (first.shape(0) != rows.shape(0) + 1) throw nb::value_error("first: of each row");
             return s.launch({rows.data(), rows.shape(0)}, {first.data(), first.shape(0)},
                             {node.data(), as_many(node, units)}, units.data());
           }), "rows"_a, "first"_a, "node"_a, "units"_a,
           "Start jobs that wait, one after the other, up to the first that does not fit; return how "
           "many started. Each gets the nodes of its cells, ascending; one that has none those that "
           "the allocation chooses.")
      .def("pass_time", alone(&AnySimulation::pass_time), "time"_a,
           "Let time pass, to one before the next event; to start jobs then.")
      .def("view", alone(+[](const AnySimulation& s) { return as_arrays(s.view()); }),
           "Return the rows of the jobs that are queued, and their predicted run times; of those that "
           "run, their starts and predicted ends [s]. Where policies look at run times that are "
           "learned, ordered_by, of those that are queued [s]. On nodes free, (N * R,); those of each that runs, "
           "as of a schedule; drawn, a random state and the order of the nodes; asked, of all that "
           "wait. Under limits free, (N,) 1 where a node has no job; changes, when they may let others "
           "start, though no job comes or ends [s].")
      .def("fits", alone(+[](AnySimulation& s, const std::vector<i64>& jobs) {
             return owned(s.fits(jobs));
           }), "rows"_a, "Return which of these jobs that wait could start now, each alone.")
      .def("ended", alone(+[](const AnySimulation& s, i64 since) { return owned(s.ended(since)); }),
           "since"_a = 0, "Return the jobs in the order of their ends, from one place on.")
      .def("concerned", alone(+[](const AnySimulation& s) { return owned(s.concerned()); }),
           "Return the jobs whose predictions are to be renewed.")
      .def("run_time", alone(&AnySimulation::run_time), "job"_a, "Return how long a job runs [s].")
      .def("start", alone(+[](const AnySimulation& s, i64 j) { return s.of(j).start; }), "job"_a,
           "Return when a job started [s], -1: not yet.")
      .def("features", alone(&AnySimulation::features), "job"_a, "now"_a = false,
           "Return the features of a job, as it was submitted or now.")
      .def("moment", alone(+[](const AnySimulation& s) { return as_arrays(s.moment()); }),
           "Return what stands at the end of a pass. (1,) each: time and shadow [s]; submitted and "
           "started, how many jobs; free and extra units; head, -1; next_look [s]. looks, as `begin` takes "
           "them. came: how many had come before each job, -1; given_up: the jobs that others have suspended.")
      .def("reserved", alone(+[](const AnySimulation& s) { return as_arrays(s.reserved()); }),
           "Return the starts that are reserved for jobs that wait, where all have reservations, (n_jobs,) "
           "[s], and on nodes the cells of those that run or wait; nothing where they are to be made "
           "anew. With the rule reserves_all planned, the starts [s] by Slurm's last look, -1, and "
           "planned_at, (1,), when that was.")
      .def("progress", alone(+[](const AnySimulation& s, In<i64> rows) {
             std::vector<i64> start, backfilled;
             for (const i64 j : listed(rows))
               start.push_back(s.of(j).start), backfilled.push_back(s.of(j).backfilled);
             return as_arrays<i64>({{"start", start}, {"backfilled", backfilled}});
           }), "rows"_a, "Return the starts of jobs [s], -1, and whether they were backfilled.")
      .def("in_order", alone(+[](const AnySimulation& s, In<i64> rows) {
             return owned(s.in_order(listed(rows)));
           }), "rows"_a, "Return jobs in primary order, as it is now, be they queued or not.")
      .def("values_of", alone(+[](AnySimulation& s, const ByName& expression, i64 n_jobs, In<i64> rows) {
             if (n_jobs < s.model().n_jobs) throw nb::value_error("n_jobs: of all jobs");
             return owned(s.values_of(expression_of(Told(expression), n_jobs), listed(rows)));
           }), "expression"_a, "n_jobs"_a, "rows"_a,
           "Return what an expression, as a model takes it, says of jobs that wait, as things are now.")
      .def("exceeded", alone(+[](const AnySimulation& s, In<i64> rows) {
             return owned(s.exceeded(listed(rows)));
           }), "rows"_a, "Return which quotas each job would exceed if it started now, one by one.")
      .def("learned", alone(+[](AnySimulation& s) { return as_arrays(s.learned()); }),
           "Return what has been learned of the jobs that have ended.")
      .def("scores", alone(+[](const AnySimulation& s) { return owned(s.scores()); }),
           "Return the score and the patience of each job in primary order, (2 * n_jobs,), where "
           "scores order it.")
      .def("look_ahead", alone(&AnySimulation::look_ahead), "foresight"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Simulate to the end, and let look-ahead order the queue at each pass.")
      .def("choose", alone(&AnySimulation::choose), "foresight"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Return the vector to follow at the pass before which an order is asked for. What it has "
           "learned is of the passes before.")
      .def("believe", alone(+[](AnySimulation& s, const ByName& arrays) {
             s.believe(belief_of(Told(arrays)));
           }), "belief"_a, "Where jobs share nodes: let jobs start by another belief of speedups.")
      .def("spells", alone(+[](const AnySimulation& s, i64 since) { return as_arrays(s.spells(since)); }),
           "since"_a = 0, "Return in which spells jobs ran at one rate, from one place on, by the "
           "clock: job, beside, which is the code that limited it or -1, begin, end.")
      .def("neighbours", alone(+[](const AnySimulation& s) { return as_arrays(s.neighbours()); }),
           "Return the running jobs beside which others find room, in the order of their starts: "
           "job; room, on how many nodes; nodes, how many have no job, or one and a part free.")
      .def("saved", alone(+[](AnySimulation& s) {
             const std::string bytes = s.saved();
             return nb::bytes(bytes.data(), bytes.size());
           }), "Return what it knows, for `load`.")
      .def("load", alone(+[](AnySimulation& s, nb::bytes bytes) {
             s.load({bytes.c_str(), bytes.size()});
           }), "saved"_a, "Go on from there, as one of the same model that has not begun.")
      .def("hidden", alone(&AnySimulation::hidden),
           "Return one that goes on with what is known: jobs that have not ended run for their "
           "predicted times, and those that have not been submitted are no more.")
      .def("anew", alone(+[](const AnySimulation& s, In<i64> run_times) {
             return s.anew({run_times.data(), run_times.shape(0)});
           }), "run_times"_a,
           "Return one of the first jobs alone, before its first event; each runs for so long [s].")
      .def("run_times", alone(+[](const AnySimulation& s) {
             std::vector<i64> found;
             for (i64 j = 0; j < s.model().n_jobs; ++j) found.push_back(s.model().jobs[j].run);
             return owned(found);
           }),
           "Return the run times [s] that it was told, (n_jobs,).")
      .def("copy", alone(&AnySimulation::copy), "Return one that goes on alone.")
      .def("schedule", alone(+[](const AnySimulation& s) { return as_arrays(s.schedule()); }),
           "Return what became of each job, (n_jobs,) int64 each: start [s], -1 before; predicted "
           "[s]; promised [s], -1 if nothing was; corrections; backfilled; number, of those that "
           "started before. On nodes those that each has had: cell_first, (n_jobs + 1,); "
           "cell_node; cell_units. Of runs that were lost, in the order of their ends: lost_job; "
           "lost_start; lost_end [s]; lost_first; lost_node; lost_units.")
      .def("idle_seconds", alone(+[](AnySimulation& s) { return as_arrays(s.idle_seconds()); }),
           "Return what processors without a job have done, (1,) [processor seconds] each.")
      .def_prop_ro("time", alone(+[](const AnySimulation& s) { return s.now().time; }),
                    "[s] of the last event.")
      .def_prop_ro("coming", alone(+[](const AnySimulation& s) { return s.now().coming; }),
                    "How many jobs have not been submitted.")
      .def_prop_ro("free", alone(+[](const AnySimulation& s) { return s.now().free; }),
                    "Units that no job has.");

  bind_many(m);
  bind_stepper(m);
  bind_listing(m);
  bind_past(m);
  bind_regression(m);
  bind_text(m);
}
