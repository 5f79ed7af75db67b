#include "optimality/integer_program.h"

#include <Cbc_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "base/error.h"

namespace thimble {
namespace {

// The objective is the extra compute in percent of the base; two plans this close are equal.
constexpr double kEqualPercent = 1e-5;

// A column of the program times a factor, plus a constant.
struct Term {
  int column = -1;
  double factor = 1;
};

// A linear expression.
struct Sum {
  std::vector<Term> terms;
  double constant = 0;

  Sum& add(const Sum& other, double factor = 1) {
    for (const Term& term : other.terms) terms.push_back({term.column, factor * term.factor});
    constant += factor * other.constant;
    return *this;
  }
};

struct CbcDeleter {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

class Program {
 public:
  Program(const Problem& problem, Bytes budget, const SolverLimits& limits)
      : problem_(problem), model_(Cbc_newModel()) {
    Cbc_setLogLevel(model_.get(), limits.verbose ? 1 : 0);
    Cbc_setObjSense(model_.get(), 1);
    Cbc_setMaximumSeconds(model_.get(), limits.seconds);
    Cbc_setAllowableGap(model_.get(), kEqualPercent);
    Cbc_setAllowableFractionGap(model_.get(), 0);
    choose_unit();
    add_slots();
    add_presence();
    add_memory(budget);
  }

  IntegerSolution solve() {
    const auto start = std::chrono::steady_clock::now();
    Cbc_solve(model_.get());
    IntegerSolution solution;
    solution.solver_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double per_percent = problem_.base_seconds / 100;
    if (Cbc_isProvenInfeasible(model_.get())) return solution;
    const bool optimal = Cbc_isProvenOptimal(model_.get());
    solution.status =
        optimal ? IntegerSolution::Status::optimal : IntegerSolution::Status::time_limit;
    const double bound = std::max(0.0, Cbc_getBestPossibleObjValue(model_.get()));
    solution.bound = problem_.base_seconds + per_percent * bound;
    if (const double* best = Cbc_bestSolution(model_.get())) {
      solution.runs = Runs();
      for (const Slot& slot : slots_) {
        const bool runs = certain(slot) || best[slot.run.terms[0].column] > 0.5;
        if (runs) solution.runs->push_back(slot.task);
      }
      solution.seconds = problem_.base_seconds + per_percent * Cbc_getObjValue(model_.get());
      if (optimal) solution.bound = solution.seconds;
    }
    return solution;
  }

 private:
  struct Slot {
    int task = 0;
    Sum run;  // 1, or the binary R
  };
  static bool certain(const Slot& slot) { return slot.run.terms.empty(); }

  // Bytes are counted in the largest unit that divides them all, to keep the numbers small.
  void choose_unit() {
    for (const Problem::Value& value : problem_.values) unit_ = std::gcd(unit_, value.bytes);
    for (const Problem::Task& task : problem_.tasks) unit_ = std::gcd(unit_, task.scratch);
  }
  double units(int64_t bytes) const { return static_cast<double>(bytes / unit_); }

  int add_column(double lower, double upper, double cost, bool integer) {
    const int column = Cbc_getNumCols(model_.get());
    Cbc_addCol(model_.get(), fmt::format("c{}", column).c_str(), lower, upper, cost, integer, 0,
               nullptr, nullptr);
    return column;
  }

  Sum variable(double lower = 0, double upper = 1) {
    return {{{add_column(lower, upper, 0, false)}}, 0};
  }

  // lhs <= rhs
  void require(Sum lhs, const Sum& rhs) {
    lhs.add(rhs, -1);
    std::sort(lhs.terms.begin(), lhs.terms.end(),
              [](const Term& a, const Term& b) { return a.column < b.column; });
    std::vector<int> columns;
    std::vector<double> factors;
    for (const Term& term : lhs.terms) {
      if (!columns.empty() && columns.back() == term.column) {
        factors.back() += term.factor;
      } else {
        columns.push_back(term.column);
        factors.push_back(term.factor);
      }
    }
    if (columns.empty()) {
      internal_check(lhs.constant <= 0, "the integer program contradicts itself");
      return;
    }
    Cbc_addRow(model_.get(), "row", static_cast<int>(columns.size()), columns.data(),
               factors.data(), 'L', -lhs.constant);
  }

  void add_slots() {
    for (int stage = 0; stage < problem_.size(); ++stage) {
      for (int i = 0; i < stage; ++i) {
        const Problem::Task& task = problem_.tasks[static_cast<size_t>(i)];
        if (!task.repeatable || task.useful_until < stage) continue;
        const double percent = 100 * task.seconds / problem_.base_seconds;
        slots_.push_back({i, {{{add_column(0, 1, percent, true)}}, 0}});
      }
      slots_.push_back({stage, {{}, 1}});
    }
  }

  // present_[v][j]: whether value v is there behind the j-th slot that touches it.
  void add_presence() {
    const size_t count = problem_.values.size();
    touches_.resize(count);
    present_.resize(count);
    for (size_t s = 0; s < slots_.size(); ++s) {
      const Problem::Task& task = problem_.tasks[static_cast<size_t>(slots_[s].task)];
      for (const int v : task.reads) touches_[static_cast<size_t>(v)].push_back(s);
      for (const int v : task.makes) touches_[static_cast<size_t>(v)].push_back(s);
    }
    for (size_t v = 0; v < count; ++v) {
      const Problem::Value& value = problem_.values[v];
      Sum before = {{}, value.maker < 0 ? 1.0 : 0.0};
      for (size_t j = 0; j < touches_[v].size(); ++j) {
        const Slot& slot = slots_[touches_[v][j]];
        const bool last = j + 1 == touches_[v].size();
        Sum after = variable(last && value.result ? 1 : 0, last && !value.result ? 0 : 1);
        if (slot.task == value.maker) {
          Sum held = before;
          held.add(slot.run);
          require(after, held);
          require(held, {{}, 1});  // not recomputed while it is there
        } else {
          require(slot.run, before);
          require(after, before);
        }
        present_[v].push_back(after);
        before = after;
      }
    }
  }

  // Whether value v is there just before slot s.
  Sum present_before(size_t v, size_t s) const {
    const auto next = std::lower_bound(touches_[v].begin(), touches_[v].end(), s);
    const auto passed = next - touches_[v].begin();
    if (passed == 0) return {{}, problem_.values[v].maker < 0 ? 1.0 : 0.0};
    return present_[v][static_cast<size_t>(passed) - 1];
  }

  void add_memory(Bytes budget) {
    const Sum room = {{}, units(budget.count - problem_.persistent)};
    for (size_t s = 0; s < slots_.size(); ++s) {
      const Problem::Task& task = problem_.tasks[static_cast<size_t>(slots_[s].task)];
      Sum live;
      for (size_t v = 0; v < problem_.values.size(); ++v) {
        live.add(present_before(v, s), units(problem_.values[v].bytes));
      }
      int64_t made = task.scratch;
      for (const int v : task.makes) made += problem_.values[static_cast<size_t>(v)].bytes;
      live.add(slots_[s].run, units(made));
      live.add(taken_over(task, s), -1);
      require(live, room);
    }
  }

  // Bytes of results that lie where a value lay that ends at this slot.
  Sum taken_over(const Problem::Task& task, size_t s) {
    std::vector<Sum> chosen;
    for (size_t i = 0; i < task.takeovers.size(); ++i) chosen.push_back(variable());
    for (const int v : task.reads) {
      Sum over_v;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (task.takeovers[i].from == v) over_v.add(chosen[i]);
      }
      if (over_v.terms.empty()) continue;
      Sum freed = present_before(static_cast<size_t>(v), s);
      freed.add(present_before(static_cast<size_t>(v), s + 1), -1);
      require(over_v, freed);
    }
    Sum bytes;
    for (const int v : task.makes) {
      Sum by_v;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (task.takeovers[i].to == v) by_v.add(chosen[i]);
      }
      if (by_v.terms.empty()) continue;
      require(by_v, slots_[s].run);
      bytes.add(by_v, units(problem_.values[static_cast<size_t>(v)].bytes));
    }
    return bytes;
  }

  const Problem& problem_;
  std::unique_ptr<Cbc_Model, CbcDeleter> model_;
  int64_t unit_ = 0;
  std::vector<Slot> slots_;                   // in time order
  std::vector<std::vector<size_t>> touches_;  // by value: slots that read or make it
  std::vector<std::vector<Sum>> present_;     // by value, by touch
};

}  // namespace

IntegerSolution solve_integer_program(const Problem& problem, Bytes budget,
                                      const SolverLimits& limits) {
  return Program(problem, budget, limits).solve();
}

std::string solver_version() { return fmt::format("CBC {}", Cbc_getVersion()); }

}  // namespace thimble
