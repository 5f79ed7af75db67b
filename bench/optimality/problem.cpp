#include "optimality/problem.h"

#include <algorithm>

#include "base/error.h"
#include "plan/schedule/place_updates.h"

namespace thimble {
namespace {

class Maker {
 public:
  Maker(const Graph& graph, const Costs& costs)
      : graph_(graph),
        costs_(costs),
        shown_(graph.values.size()),
        index_(graph.values.size(), -1) {}

  Problem run() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      shown_[v] = make_id<ValueId>(v);
      const Value& value = graph_.values[v];
      if (value.producer.valid()) continue;
      if (is_persistent(value.role)) {
        problem_.persistent += align_up(value.type.bytes()).count;
      } else {
        add_value(make_id<ValueId>(v), -1);
      }
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) add_node(make_id<NodeId>(n));
    for (const ValueId result : graph_.results) at(index_of(result)).result = true;
    find_uses();
    return std::move(problem_);
  }

 private:
  Problem::Value& at(int value) { return problem_.values[static_cast<size_t>(value)]; }
  // The problem's number of what lies at the value's bytes; -1: persistent.
  int index_of(ValueId value) const { return index_[shown_[value.at()].at()]; }

  int add_value(ValueId value, int maker) {
    const int index = static_cast<int>(problem_.values.size());
    problem_.values.push_back(
        {.bytes = align_up(graph_[value].type.bytes()).count, .maker = maker});
    return index_[value.at()] = index;
  }

  void add_node(NodeId id) {
    const Node& node = graph_[id];
    internal_check(node.phase == Phase::per_microbatch && !is_update(node),
                   "a call without updates is wanted");
    if (node.op->view) {
      shown_[node.outputs[0].at()] = shown_[node.inputs[0].at()];
      const int value = index_of(node.inputs[0]);
      const int maker = value < 0 ? -1 : at(value).maker;
      auto& views =
          maker < 0 ? problem_.source_views : problem_.tasks[static_cast<size_t>(maker)].views;
      views.push_back(id);
      return;
    }
    const int task_index = problem_.size();
    const NodeCost& cost = costs_.nodes[id.at()];
    Problem::Task task{.node = id,
                       .seconds = cost.seconds,
                       .scratch = align_up(cost.workspace).count,
                       .repeatable = !node.backward && node.op->recompute != Recompute::never};
    const auto read = [&](ValueId value) {
      const int index = index_of(value);
      if (index < 0 || std::count(task.reads.begin(), task.reads.end(), index) > 0) return;
      task.reads.push_back(index);
      at(index).readers.push_back(task_index);
    };
    for (const ValueId input : node.inputs) read(input);
    for (const ValueId target : node.accumulate) {
      if (!target.valid()) continue;
      task.repeatable = false;  // what it was added into is gone
      read(target);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      task.makes.push_back(add_value(node.outputs[k], task_index));
      add_takeovers(node, k, task);
    }
    problem_.base_seconds += task.seconds;
    problem_.tasks.push_back(std::move(task));
  }

  void add_takeovers(const Node& node, size_t k, Problem::Task& task) {
    const int to = task.makes[k];
    if (node.added_into(k).valid()) {
      task.takeovers.push_back({index_of(node.added_into(k)), to});
      return;
    }
    const auto may_overwrite = [&](size_t input) {
      return std::any_of(node.op->in_place.begin(), node.op->in_place.end(), [&](const Alias& a) {
        return a.output == static_cast<int>(k) && a.input == static_cast<int>(input);
      });
    };
    for (const int from : task.reads) {
      bool sound = true, reads_it = false;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (index_of(node.inputs[i]) != from) continue;
        reads_it = true;
        sound &= may_overwrite(i) &&
                 graph_[node.inputs[i]].type.bytes() == graph_[node.outputs[k]].type.bytes();
      }
      if (reads_it && sound) task.takeovers.push_back({from, to});
    }
  }

  void find_uses() {
    for (int t = problem_.size() - 1; t >= 0; --t) {
      Problem::Task& task = problem_.tasks[static_cast<size_t>(t)];
      for (const int made : task.makes) {
        find_need(at(made));
        if (task.repeatable) task.useful_until = std::max(task.useful_until, at(made).needed_until);
      }
    }
    for (Problem::Value& value : problem_.values) {
      if (value.maker < 0) find_need(value);
    }
  }

  // REQUIRES: the readers' useful_until are known.
  void find_need(Problem::Value& value) const {
    if (value.result) value.needed_until = problem_.size();
    for (const int reader : value.readers) {
      const int useful = problem_.tasks[static_cast<size_t>(reader)].useful_until;
      value.needed_until = std::max({value.needed_until, reader, useful});
    }
  }

  const Graph& graph_;
  const Costs& costs_;
  std::vector<ValueId> shown_;  // by value: at whose bytes it lies
  std::vector<int> index_;      // by value: its number in the problem, or -1
  Problem problem_;
};

}  // namespace

Problem make_problem(const Graph& graph, const Costs& costs) { return Maker(graph, costs).run(); }

double seconds_of(const Problem& problem, const Runs& runs) {
  double seconds = 0;
  for (const int task : runs) seconds += problem.tasks[static_cast<size_t>(task)].seconds;
  return seconds;
}

Schedule to_schedule(const Problem& problem, const Runs& runs) {
  Schedule schedule;
  std::vector<bool> ran(problem.tasks.size(), false);
  for (const NodeId view : problem.source_views) schedule.calls.push_back({view, false});
  for (const int run : runs) {
    const Problem::Task& task = problem.tasks[static_cast<size_t>(run)];
    const bool again = ran[static_cast<size_t>(run)];
    schedule.calls.push_back({task.node, again});
    for (const NodeId view : task.views) schedule.calls.push_back({view, again});
    ran[static_cast<size_t>(run)] = true;
  }
  return schedule;
}

}  // namespace thimble
